/** The parts of a server's protocol that a client needs to receive bodies. */
interface Dialect {
  /** Returns whether the payload that begins at an offset is a body. */
  isBody(bytes: Uint8Array, start: number): boolean;
  /** Returns the reply to any other payload. */
  answer?(payload: Uint8Array): string | Uint8Array | undefined;
  /** Requests the path of the next socket from the server, if its protocol requires that. */
  findPath?(port: number): Promise<string>;
}

export type DialectName = keyof typeof DIALECTS;

const code = (letter: string) => letter.charCodeAt(0);
const COLYSEUS_JOIN = 10;
const COLYSEUS_MESSAGE = 13;

export const DIALECTS = {
  /** Frames of docs/watch.md: `{"type":"body"…`. */
  plain: { isBody: (bytes, start) => bytes[start + 9] === code('b') },
  /** Packets of Engine.IO 4 and Socket.IO 5: 0 opens, 40 connects, 2 is a ping, 42 is an event. */
  socket_io: {
    isBody: (bytes, start) => bytes[start] === code('4') && bytes[start + 1] === code('2'),
    answer: (payload) => (payload[0] === code('0') ? '40' : payload[0] === code('2') ? '3' : undefined),
  },
  /** A seat is reserved over HTTP; JOIN_ROOM is acknowledged; ROOM_DATA is a message. */
  colyseus: {
    isBody: (bytes, start) => bytes[start] === COLYSEUS_MESSAGE,
    answer: (payload) => (payload[0] === COLYSEUS_JOIN ? new Uint8Array([COLYSEUS_JOIN]) : undefined),
    async findPath(port) {
      const url = `http://127.0.0.1:${port}/matchmake/joinOrCreate/room`;
      // Node closes idle connections after some seconds, even while a request is being sent.
      const headers = { 'content-type': 'application/json', connection: 'close' };
      const seat = await (await fetch(url, { method: 'POST', headers, body: '{}' })).json();
      return `/${seat.processId}/${seat.roomId}?sessionId=${seat.sessionId}`;
    },
  },
} satisfies Record<string, Dialect> as Record<'plain' | 'socket_io' | 'colyseus', Dialect>;

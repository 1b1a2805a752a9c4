import { connect } from 'node:net';

/** A WebSocket whose client reads only when the test says so. */
export interface RawSocket extends Disposable {
  /** Texts that were read so far. */
  texts: string[];
  /** The close code, once it was read. */
  closed: Promise<number>;
  send(frame: object): void;
  /** Stops reading until it is resumed, so that frames stay with the sender. */
  pause(): void;
  resume(): void;
  /** Destroys the connection without a close frame. */
  cut(): void;
}

const TEXT = 1;
const CLOSE = 8;

/** Opens one (RFC 6455) and waits for the upgrade. */
export async function openRawSocket(
  base_url: string,
  token: string,
  { localAddress }: { localAddress?: string } = {},
): Promise<RawSocket> {
  const { hostname, port } = new URL(base_url);
  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<number>();
  const texts: string[] = [];
  let received = Buffer.alloc(0);
  let is_open = false;
  const socket = connect({ port: Number(port), host: hostname, ...(localAddress ? { localAddress } : {}) });
  socket.on('error', () => {});
  socket.on('close', () => {
    opened.reject(new Error('the upgrade was refused'));
    closed.resolve(1006);
  });
  socket.on('data', (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
    if (!is_open) {
      const head = received.indexOf('\r\n\r\n');
      if (head < 0) return;
      if (!received.toString('latin1', 0, head).startsWith('HTTP/1.1 101')) socket.destroy();
      received = received.subarray(head + 4);
      is_open = true;
      opened.resolve();
    }
    for (let frame = readFrame(received); frame; frame = readFrame(received)) {
      received = received.subarray(frame.end);
      if (frame.kind === TEXT) texts.push(frame.payload.toString());
      if (frame.kind === CLOSE) closed.resolve(frame.payload.readUInt16BE(0));
    }
  });
  socket.write(
    [
      'GET /watch HTTP/1.1',
      `Host: ${hostname}:${port}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64')}`,
      'Sec-WebSocket-Protocol: muster.watch.v1',
      `Authorization: Bearer ${token}`,
      '',
      '',
    ].join('\r\n'),
  );
  await opened.promise;
  return {
    texts,
    closed: closed.promise,
    send(frame) {
      const payload = Buffer.from(JSON.stringify(frame));
      // The longer form of the length, and a mask that changes nothing.
      const head = Buffer.from([0x81, 0xfe, payload.length >> 8, payload.length & 0xff, 0, 0, 0, 0]);
      socket.write(Buffer.concat([head, payload]));
    },
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    cut: () => void socket.destroy(),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** Returns the first frame once it is complete. A server's frames have no mask. */
function readFrame(bytes: Buffer): { kind: number; payload: Buffer; end: number } | undefined {
  if (bytes.length < 2) return undefined;
  const short = bytes.readUInt8(1) & 0x7f;
  const start = short === 127 ? 10 : short === 126 ? 4 : 2;
  if (bytes.length < start) return undefined;
  const length = short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short;
  const end = start + length;
  if (bytes.length < end) return undefined;
  return { kind: bytes.readUInt8(0) & 0x0f, payload: bytes.subarray(start, end), end };
}

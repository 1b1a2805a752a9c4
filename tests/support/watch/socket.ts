import { waitFor } from '../wait.ts';

/** A frame of the service. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into frames of every shape.
type Frame = any;

export interface TestSocket extends Disposable {
  /** All received frames, in order. */
  frames: Frame[];
  socket: WebSocket;
  /** Code and reason, once it is closed. */
  closed: Promise<{ code: number; reason: string }>;
  send(frame: unknown): void;
  /** Returns the next frame that meets a condition, after those returned before. */
  next(condition?: (frame: Frame) => boolean): Promise<Frame>;
  /** Watches a path under an id, and returns the key. */
  subscribe(id: string, path: string, watch_index?: string): Promise<string>;
  /** Returns the next body under a key. */
  body(key: string): Promise<Frame>;
}

interface SocketOptions {
  token?: string;
  protocols?: string[];
  headers?: Record<string, string>;
  tls?: { rejectUnauthorized: boolean };
}

/** Returns whether a frame is an error. */
export const isError = ({ type }: Frame): boolean => type === 'error';

/** Opens a WebSocket as a client does that knows only the protocol. */
export function openSocket(base_url: string, { token, protocols, headers, tls }: SocketOptions = {}): TestSocket {
  const offered = protocols ?? ['muster.watch.v1', ...(token === undefined ? [] : [`bearer.${token}`])];
  const options = { protocols: offered, headers: headers ?? {}, ...(tls && { tls }) };
  const socket = new WebSocket(`${base_url.replace(/^http/, 'ws')}/watch`, options as unknown as string[]);
  const frames: Frame[] = [];
  let returned_count = 0;
  const closed = Promise.withResolvers<{ code: number; reason: string }>();
  socket.addEventListener('message', ({ data }) => frames.push(JSON.parse(data)));
  socket.addEventListener('close', ({ code, reason }) => closed.resolve({ code, reason }));
  const send = (frame: unknown) => {
    const text = typeof frame === 'string' ? frame : JSON.stringify(frame);
    if (socket.readyState === WebSocket.OPEN) socket.send(text);
    else socket.addEventListener('open', () => socket.send(text));
  };
  const next: TestSocket['next'] = async (condition = () => true) => {
    const found = await waitFor(() => {
      const index = frames.findIndex((frame, index) => index >= returned_count && condition(frame));
      return index < 0 ? undefined : { index };
    }, 'a frame');
    returned_count = found.index + 1;
    return frames[found.index];
  };
  return {
    frames,
    socket,
    closed: closed.promise,
    send,
    next,
    async subscribe(id, path, watch_index) {
      send({ type: 'subscribe', id, path, ...(watch_index === undefined ? {} : { watch_index }) });
      const { key } = await next((frame) => frame.type === 'subscribed' && frame.id === id);
      return key;
    },
    body: async (key) => (await next((frame) => frame.type === 'body' && frame.key === key)).body,
    [Symbol.dispose]: () => socket.close(),
  };
}

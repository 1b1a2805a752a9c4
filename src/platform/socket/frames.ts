import { type Static, Type } from '@sinclair/typebox';
import { ServiceError } from '../errors.ts';
import { compileShape, describeProblem } from '../http/shapes.ts';

/** The subprotocol of docs/watch.md. */
export const SUBPROTOCOL = 'muster.watch.v1';
/** The longest frame that a client of the watch channel may send. */
export const CLIENT_FRAME_BYTES_MAX = 16_384;

const Id = Type.String({ minLength: 1, maxLength: 64 });

export const Subscribe = Type.Object({
  type: Type.Literal('subscribe'),
  id: Id,
  path: Type.String({ minLength: 1, maxLength: 4_096, pattern: '^/' }),
  watch_index: Type.Optional(Type.String({ maxLength: 64 })),
});
export const Authenticate = Type.Object({
  type: Type.Literal('authenticate'),
  token: Type.String({ maxLength: 8_192 }),
});
export const Unsubscribe = Type.Object({ type: Type.Literal('unsubscribe'), id: Id });
export const Ping = Type.Object({ type: Type.Literal('ping') });

export type SubscribeFrame = Static<typeof Subscribe>;
export type ClientFrame =
  | SubscribeFrame
  | Static<typeof Authenticate>
  | Static<typeof Unsubscribe>
  | Static<typeof Ping>;

const WITH_ID = compileShape(Type.Object({ id: Id }));
const SHAPES = {
  subscribe: compileShape(Subscribe),
  authenticate: compileShape(Authenticate),
  unsubscribe: compileShape(Unsubscribe),
  ping: compileShape(Ping),
};

/** Parses a client's frame; undefined if it is not JSON. */
export function parseFrame(data: string | Uint8Array): unknown {
  return typeof data === 'string' ? parse(data) : undefined;
}

/** Reads the id of a frame, even if the frame is otherwise invalid. */
export function readId(frame: unknown): string | undefined {
  return WITH_ID.accepts(frame) ? frame.id : undefined;
}

/** Checks a client's frame. Throws WATCH_BAD_FRAME. */
export function readFrame(frame: unknown): ClientFrame {
  if (typeof frame !== 'object' || frame === null || !('type' in frame)) throw badFrame('expected JSON with a "type"');
  const name = frame.type;
  if (!isName(name)) throw badFrame(`expected one of the types ${Object.keys(SHAPES).join(', ')}`);
  const shape = SHAPES[name];
  if (shape.accepts(frame)) return frame;
  throw badFrame(shape.problems(frame).slice(0, 1).map(describeProblem).join());
}

function isName(name: unknown): name is keyof typeof SHAPES {
  return typeof name === 'string' && Object.hasOwn(SHAPES, name);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function badFrame(error: string): ServiceError {
  return new ServiceError('WATCH_BAD_FRAME', { error });
}

/** The frames of the service, as JSON. `body` is JSON already. */
export const frames = {
  ready: (subscriptions_max: number) => JSON.stringify({ type: 'ready', subscriptions_max }),
  subscribed: (id: string, key: string) => JSON.stringify({ type: 'subscribed', id, key }),
  unsubscribed: (id: string) => JSON.stringify({ type: 'unsubscribed', id }),
  body: (key: string, body: string) => `{"type":"body","key":"${key}","body":${body}}`,
  error: (error: object, id: string | undefined, retry_after_ms: number | undefined) =>
    JSON.stringify({ type: 'error', id, error, retry_after_ms }),
  pong: () => '{"type":"pong"}',
};

/** The codes with which the service closes a socket (RFC 6455, 7.4). */
export const CLOSE = {
  /** A frame of the client is too long. */
  too_long: 1009,
  /** The service stops; connect again in a moment. */
  restarting: 1012,
  /** The token did not come in time, is invalid, belongs to another caller, or has expired. */
  unauthorized: 4401,
  /** The client sent too many frames or invalid tokens, or has too many sockets. */
  too_many: 4429,
  /** The client did not read for too long. */
  too_slow: 4410,
} as const;

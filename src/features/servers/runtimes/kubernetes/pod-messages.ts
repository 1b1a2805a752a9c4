import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ORDER_VARIABLE } from './pod-names.ts';

const REASON_CHARACTERS_MAX = 300;
const WRITTEN_MAX = 10_000;
/** A hostile server can send in the name of its pod, so every number has limits: those that the database can add up. */
const Count = Type.Integer({ minimum: 0, maximum: 2 ** 50 });
/** An offset in the output. A call has at most 15 digits for it. */
const Offset = Type.Integer({ minimum: 0, maximum: 10 ** 15 - 1 });
/** How many milliseconds ago something was written, also by a clock that was set. */
const Age = Type.Number({ minimum: 0, maximum: 10 ** 13 });

/** What the container that fetches a build needs. */
export const BuildOrder = Type.Object({
  url: Type.String(),
  token: Type.String(),
  sha256: Type.String(),
});
export type BuildOrder = Static<typeof BuildOrder>;

/** What the first process of a server needs. */
export const ServerOrder = Type.Object({
  /** The address of the socket to the holder: the process of Muster that has the pods. */
  url: Type.String(),
  token: Type.String(),
  /** How the program is started: by a shell, by Muster's executable, or as a program of an image. */
  kind: Type.Union([Type.Literal('archive'), Type.Literal('script'), Type.Literal('image')]),
  command: Type.Array(Type.String()),
  /** The directory in which it starts. */
  directory: Type.String(),
  /** All of its variables. */
  environment: Type.Record(Type.String(), Type.String()),
  /** MiB, for the sentence about a server that exceeded it. */
  memory: Type.Integer(),
});
export type ServerOrder = Static<typeof ServerOrder>;

/** How the program of a server ended. */
const End = Type.Object({
  exit_code: Type.Union([Type.Integer({ minimum: 0, maximum: 255 }), Type.Null()]),
  exit_signal: Type.Union([Type.String({ pattern: '^SIG[A-Z0-9]{1,10}$' }), Type.Null()]),
  /** Without the character zero, which the database cannot store. */
  reason: Type.Optional(Type.String({ maxLength: REASON_CHARACTERS_MAX, pattern: '^[^\\0]*$' })),
});
export type End = Static<typeof End>;

const Sizes = Type.Object({ std_out: Offset, std_err: Offset });
export type Sizes = Static<typeof Sizes>;

/** Output of a server. */
export const Piece = Type.Object({
  /** Base64. */
  bytes: Type.String(),
  /** The offset of the first byte. */
  start: Offset,
  skipped_bytes: Offset,
  has_more: Type.Boolean(),
  written: Type.Array(Type.Object({ until: Offset, age_ms: Age }), { maxItems: WRITTEN_MAX }),
});
export type Piece = Static<typeof Piece>;

export const Usage = Type.Object({ cpu_ms: Count, memory_bytes: Type.Optional(Count) });

/** From the first process of a pod: its state, after each change, or the answer to a call. */
const FromPod = Type.Union([
  Type.Object({ state: Type.Object({ sizes: Sizes, end: Type.Optional(End) }) }),
  Type.Object({ answer: Type.Integer(), result: Type.Unknown() }),
]);

/** A call to the first process of a pod. */
const Call = Type.Union([
  Type.Object({
    do: Type.Literal('read'),
    stream: Type.Union([Type.Literal('std_out'), Type.Literal('std_err')]),
    from: Type.Optional(Type.String({ pattern: '^\\d{1,15}$' })),
    bytes_max: Type.Integer(),
    backlog_bytes_max: Type.Integer(),
  }),
  /** stop: SIGTERM. kill: ends all processes of the server. leave: ends the first process, and so the container. */
  Type.Object({ do: Type.Union([Type.Literal('stop'), Type.Literal('kill'), Type.Literal('leave')]) }),
  Type.Object({ do: Type.Literal('usage') }),
]);
export type Call = Static<typeof Call>;
const ToPod = Type.Intersect([Type.Object({ call: Type.Integer() }), Call]);

/** Returns a value of a shape without members that the shape does not have: a pod must add nothing to what it may say. */
export function readShape<Shape extends TSchema>(shape: Shape, value: unknown): Static<Shape> | undefined {
  const cleaned = Value.Clean(shape, value);
  return Value.Check(shape, cleaned) ? cleaned : undefined;
}

const parser =
  <Shape extends typeof FromPod | typeof ToPod>(shape: Shape) =>
  (text: string): Static<Shape> => {
    const value = readShape(shape, JSON.parse(text));
    if (value === undefined) throw new Error('a message between a pod and Muster has an unknown shape');
    return value;
  };
export const readFromPod = parser(FromPod);
export const readToPod = parser(ToPod);

/** Returns an order as the text of an environment variable, in which Kubernetes expands nothing. */
export const encodeOrder = (order: BuildOrder | ServerOrder) => Buffer.from(JSON.stringify(order)).toString('base64');

/** Reads the order of a container. */
export function decodeOrder<Shape extends typeof BuildOrder | typeof ServerOrder>(
  shape: Shape,
  text: string,
): Static<Shape> {
  const value: unknown = JSON.parse(Buffer.from(text, 'base64').toString());
  if (!Value.Check(shape, value)) {
    throw new Error(
      `${ORDER_VARIABLE} cannot be read: the image of the pod and the service must be the same release of Muster`,
    );
  }
  return value;
}

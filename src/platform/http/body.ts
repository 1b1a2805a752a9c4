import type { TSchema } from '@sinclair/typebox';
import { ServiceError } from '../errors.ts';
import { Timeouts } from '../timeouts.ts';
import type { Exchange } from './exchange.ts';
import { badBody, parseStorableJson } from './json.ts';
import { leaveOutNulls } from './null-members.ts';
import { compileShape, describeProblem } from './shapes.ts';

/** The limit of a route that names none. Anything larger is an upload, which has an address of its own. */
export const BODY_BYTES_MAX = 1_048_576;
/** An unread body of up to this size is read and dropped. */
const DROPPED_BYTES_MAX = 65_536;
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** Reads a request's body of at most a number of bytes as text. */
export type ReadText = (exchange: Exchange, bytes_max: number) => Promise<string>;

/**
 * Creates the function that reads bodies. It throws API_BODY_TOO_LARGE as soon as a body is too long,
 * whether its length was announced or not, and API_BAD_BODY if it is not UTF-8. A body that does not arrive in time is
 * answered with API_BODY_TIMEOUT.
 */
export function createTextReader(timeout_ms: number): ReadText {
  const failure = () => new ServiceError('API_BODY_TIMEOUT', { timeout_ms });
  const timeouts = new Timeouts<Exchange>(timeout_ms, (exchange) => exchange.fail(failure()));
  return async (exchange, bytes_max) => {
    const { request } = exchange;
    // NaN without a length, or with one that is repeated: then the bytes are counted.
    const announced = Number(request.headers.get('content-length') ?? Number.NaN);
    if (announced > bytes_max) throw tooLarge(bytes_max);
    const unfinished = timeouts.add(exchange);
    exchange.deadline.hold();
    let bytes: Uint8Array;
    try {
      // A body cannot be longer than announced.
      bytes = Number.isNaN(announced) ? await readCounted(request.body, bytes_max) : await request.bytes();
    } finally {
      timeouts.finish(unfinished);
      exchange.deadline.release();
    }
    // The handler must not run for a body that came too late.
    if (exchange.is_answered) throw failure();
    exchange.has_read_body = true;
    return decode(bytes);
  };
}

/**
 * Creates the function that parses a body and checks its shape. An optional member that is `null` counts as left out. It
 * throws API_BAD_BODY.
 */
export function createBodyParser(shape: TSchema): (text: string) => unknown {
  const compiled = compileShape(shape);
  return (text) => {
    const parsed = parseStorableJson(text);
    if (compiled.accepts(parsed)) return parsed;
    const body = leaveOutNulls(shape, parsed);
    if (compiled.accepts(body)) return body;
    const problems = compiled.problems(body);
    throw badBody(problems.slice(0, 1).map(describeProblem).join(), { errors: problems });
  };
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw badBody('it is not UTF-8');
  }
}

async function readCounted(body: ReadableStream<Uint8Array> | null, bytes_max: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body ?? []) {
    length += piece.length;
    if (length > bytes_max) throw tooLarge(bytes_max);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

export function hasBody({ headers }: Request): boolean {
  const announced = headers.get('content-length');
  return announced === null ? headers.has('transfer-encoding') : announced !== '0';
}

/** Ends the connection after an answer if nothing reads the body of its request: a client could hold the connection with it. */
export function closeAfterBody(request: Request, answer: Response): Response {
  if (hasBody(request)) answer.headers.set('connection', 'close');
  return answer;
}

/**
 * Returns whether more of an unread body may come after the answer. Drops a small body that has arrived already, so that its
 * connection can be kept.
 */
export async function isBodyLeft(request: Request): Promise<boolean> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (request.bodyUsed || announced > DROPPED_BYTES_MAX) return true;
  const arrived = request.bytes().then(
    () => true,
    () => false,
  );
  const turn = Promise.withResolvers<boolean>();
  setImmediate(() => turn.resolve(false));
  return !(await Promise.race([arrived, turn.promise]));
}

function tooLarge(limit_bytes: number): ServiceError<'API_BODY_TOO_LARGE'> {
  return new ServiceError('API_BODY_TOO_LARGE', { limit_bytes });
}

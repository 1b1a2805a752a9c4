import { ServiceError } from '../errors.ts';
import { Timeouts } from '../timeouts.ts';

/** Larger things are uploads and go to their own address. */
export const BODY_BYTES_MAX = 1_048_576;
/** An unread body up to this size may be read and dropped. */
const DROPPED_BYTES_MAX = 65_536;
const DEPTH_MAX = 64;
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** Reads the body of a request as text. */
export type ReadText = (request: Request) => Promise<string>;

/**
 * Makes the function that reads bodies as text. It throws API_BODY_TOO_LARGE as soon as a body is too long, announced or
 * not; API_BODY_TIMEOUT when it has not arrived in time; API_BAD_BODY if it is not UTF-8.
 */
export function createTextReader(timeout_ms: number): ReadText {
  const timeouts = new Timeouts(timeout_ms);
  return async (request) => {
    const late = Promise.withResolvers<never>();
    const deadline = {
      deadline: performance.now() + timeout_ms,
      finish: () => late.reject(new ServiceError('API_BODY_TIMEOUT', { timeout_ms })),
    };
    timeouts.add(deadline);
    try {
      return await Promise.race([readText(request), late.promise]);
    } finally {
      timeouts.delete(deadline);
    }
  };
}

/** Requests whose body has been read to its end. */
const fully_read = new WeakSet<Request>();

export function noteFullyRead(request: Request): void {
  fully_read.add(request);
}

export function hasBody({ headers }: Request): boolean {
  const announced = headers.get('content-length');
  return announced === null ? headers.has('transfer-encoding') : announced !== '0';
}

/**
 * Whether more of a request's body may come after its answer: then the connection must be closed, or a client could hold
 * it for as long as it likes. An unread body that has arrived already is dropped, and the connection stays.
 */
export async function isBodyLeft(request: Request): Promise<boolean> {
  if (fully_read.has(request)) return false;
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

async function readText(request: Request): Promise<string> {
  const announced = request.headers.get('content-length');
  if (Number(announced ?? 0) > BODY_BYTES_MAX) throw tooLarge();
  // A body is as long as it was announced; only one that was not is counted while it comes.
  const bytes = announced === null ? await readCounted(request.body) : await request.bytes();
  noteFullyRead(request);
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw badBody('it is not UTF-8');
  }
}

async function readCounted(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body ?? []) {
    length += piece.length;
    if (length > BODY_BYTES_MAX) throw tooLarge();
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Parses JSON that nests at most 64 deep; an empty text is `{}`. Throws API_BAD_BODY. */
export function parseJson(text: string): unknown {
  if (text === '') return {};
  if (isDeeperThan(text, DEPTH_MAX)) throw badBody(`it nests deeper than ${DEPTH_MAX} levels`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badBody(`it is not JSON (${error instanceof Error ? error.message : 'unreadable'})`);
  }
}

/** Of ECMAScript's next edition, which the compiler does not know yet. */
const NEXT_JSON = JSON as unknown as {
  parse(text: string, revive: (name: string, value: unknown, written: { source: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
};
const LONG_NUMBER = /[\d.]{16}|\dE/i;

/** Whether a JSON text may have a number that JavaScript would round. */
export function mayHaveLongNumbers(text: string): boolean {
  return LONG_NUMBER.test(text);
}

/**
 * Parses JSON that was parsed before, to be passed on: numbers that JavaScript would round (ids of 64 bits) stay as they
 * were written. Such a number is an object that nobody but `JSON.stringify` can read.
 */
export function parseJsonToPassOn(text: string): unknown {
  if (!mayHaveLongNumbers(text)) return JSON.parse(text);
  const { parse, rawJSON } = NEXT_JSON;
  return parse(text, (_name, value, { source }) =>
    typeof value === 'number' && String(value) !== source ? rawJSON(source) : value,
  );
}

export function badBody(error: string, metadata?: unknown): ServiceError<'API_BAD_BODY'> {
  return new ServiceError('API_BAD_BODY', { error }, { metadata });
}

/**
 * The same for a body whose values are kept one by one. PostgreSQL keeps neither the character zero nor halves of
 * characters; and no member may have the name by which JavaScript finds what an object inherits.
 */
export function parseJsonToKeep(text: string): unknown {
  const value = parseJson(text);
  // All three can only be written with these: other bodies, nearly all, are not walked through.
  if (text.includes('\\u') || text.includes(PROTOTYPE)) JSON.parse(text, refuseUnkept);
  return value;
}

const PROTOTYPE = '__proto__';

function refuseUnkept(name: string, value: unknown): unknown {
  if (name === PROTOTYPE) throw badBody(`it has a member named ${PROTOTYPE}`);
  if (!isKept(name) || (typeof value === 'string' && !isKept(value))) {
    throw badBody(
      'it has a text with the character zero or half a character (\\u0000, or one of \\ud800 to \\udfff alone)',
    );
  }
  return value;
}

/** Whether the database can hold a text. */
export function isKept(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Counts brackets outside of strings, so that no recursion of ours meets a tower of them. */
function isDeeperThan(text: string, depth_max: number): boolean {
  let depth = 0;
  let is_in_string = false;
  for (let place = 0; place < text.length; place += 1) {
    const character = text.charCodeAt(place);
    if (is_in_string) {
      if (character === BACKSLASH) place += 1;
      else if (character === QUOTE) is_in_string = false;
    } else if (character === QUOTE) is_in_string = true;
    else if (character === OPENING_BRACE || character === OPENING_BRACKET) {
      depth += 1;
      if (depth > depth_max) return true;
    } else if (character === CLOSING_BRACE || character === CLOSING_BRACKET) depth -= 1;
  }
  return false;
}

const QUOTE = 0x22;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

function tooLarge(): ServiceError<'API_BODY_TOO_LARGE'> {
  return new ServiceError('API_BODY_TOO_LARGE', { limit_bytes: BODY_BYTES_MAX });
}

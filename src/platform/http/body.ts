import { ServiceError } from '../errors.ts';

/** Larger things are uploads and go to their own address. */
export const BODY_BYTES_MAX = 1_048_576;
const DEPTH_MAX = 64;

/** Reads a body as text. Throws API_BODY_TOO_LARGE as soon as it is too long, announced or not. */
export async function readText(request: Request): Promise<string> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > BODY_BYTES_MAX) throw tooLarge();
  if (request.body === null) return '';
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of request.body) {
    length += piece.length;
    if (length > BODY_BYTES_MAX) throw tooLarge();
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
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

export function badBody(error: string, metadata?: unknown): ServiceError<'API_BAD_BODY'> {
  return new ServiceError('API_BAD_BODY', { error }, { metadata });
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

import { parseExactly } from '../../shared/exact-json.ts';
import { ServiceError } from '../errors.ts';

const DEPTH_MAX = 64;

export function badBody(error: string, metadata?: unknown): ServiceError<'API_BAD_BODY'> {
  return new ServiceError('API_BAD_BODY', { error }, { metadata });
}

/** Parses JSON of at most 64 levels; an empty text is `{}`. Throws API_BAD_BODY. */
export function parseJson(text: string): unknown {
  if (text === '') return {};
  if (isDeeperThan(text, DEPTH_MAX)) throw badBody(`it nests deeper than ${DEPTH_MAX} levels`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badBody(`it is not JSON (${error instanceof Error ? error.message : 'unreadable'})`);
  }
}

const PROTOTYPE = '__proto__';

/**
 * Parses JSON whose values are stored. PostgreSQL stores neither the character zero nor half of a surrogate pair, and a
 * member named `__proto__` would change what its object inherits. Throws API_BAD_BODY.
 */
export function parseStorableJson(text: string): unknown {
  const value = parseJson(text);
  // None of these can be written otherwise, so nearly all bodies are parsed once.
  if (text.includes('\\u') || text.includes(PROTOTYPE)) JSON.parse(text, refuseUnstorable);
  return value;
}

function refuseUnstorable(name: string, value: unknown): unknown {
  if (name === PROTOTYPE) throw badBody(`it has a member named ${PROTOTYPE}`);
  if (!isStorable(name) || (typeof value === 'string' && !isStorable(value))) {
    throw badBody(
      'it has a text with the character zero or half a character (\\u0000, or one of \\ud800 to \\udfff alone)',
    );
  }
  return value;
}

/** Returns whether the database can store a text. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

const LONG_NUMBER = /[\d.]{16}|\dE/i;

/** Returns whether a JSON text may have a number that JavaScript would round. */
export function mayHaveLongNumbers(text: string): boolean {
  return LONG_NUMBER.test(text);
}

/** Parses valid JSON that is sent on, as `parseExactly` does, but fast if no number may be long. */
export function parseJsonToSendOn(text: string): unknown {
  return mayHaveLongNumbers(text) ? parseExactly(text) : JSON.parse(text);
}

/** Counts brackets outside of strings, so that no recursive parser sees deep nesting. */
function isDeeperThan(text: string, depth_max: number): boolean {
  let depth = 0;
  let is_in_string = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (is_in_string) {
      if (character === BACKSLASH) at += 1;
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

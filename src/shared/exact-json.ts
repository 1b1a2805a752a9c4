/** Part of the next edition of ECMAScript, which the compiler does not know yet. */
const NEXT_JSON = JSON as unknown as {
  parse(text: string, revive: (name: string, value: unknown, written: { source: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
};

/**
 * Parses JSON that is written again. Numbers that JavaScript would round, such as ids of 64 bits, stay as written: each is
 * an object that only `JSON.stringify` can read. Throws SyntaxError.
 */
export function parseExactly(text: string): unknown {
  const { parse, rawJSON } = NEXT_JSON;
  return parse(text, (_name, value, { source }) =>
    typeof value === 'number' && String(value) !== source ? rawJSON(source) : value,
  );
}

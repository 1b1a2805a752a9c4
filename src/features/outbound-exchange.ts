import { type Static, Type } from '@sinclair/typebox';

/** What is shown of a JSON value whose texts and numbers may be secret. */
const OUTLINE = { depth_max: 4, members_max: 32, name_length_max: 64 };
const LEFT_OUT = '(left out)';

/** A request that the service sent for a player's request, and its answer, for developers to look at. */
export const OutboundExchange = Type.Object(
  {
    url: Type.String({ description: 'Where the request went, without its query.' }),
    headers: Type.Record(Type.String(), Type.String(), { description: 'Values that may be secret are left out.' }),
    body: Type.Unknown({ description: 'What was sent. Texts and numbers that may be secret are only described.' }),
    answer: Type.Optional(
      Type.Unknown({ description: 'The members of the answer that were read; absent if its body is not read.' }),
    ),
    status: Type.Optional(Type.Integer({ description: 'HTTP status of the answer; absent if there was none.' })),
    duration_ms: Type.Number({ description: 'How long the answer, or the failure, took.' }),
  },
  { title: 'OutboundExchange', description: 'The request to the other server and its answer, without secrets.' },
);
export type OutboundExchange = Static<typeof OutboundExchange>;

/** Returns an address without its query, which may have a key. */
export function withoutQuery(url: string): string {
  return URL.canParse(url) ? url.replace(/[?#].*$/s, '') : url;
}

/** Returns headers with their values removed, except the named ones. */
export function withoutValues(headers: Record<string, string>, shown: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, shown.includes(name) ? value : LEFT_OUT]),
  );
}

/** Describes a JSON value by its members and the kinds of its values: `{ "ticket": "(text, 36 characters)" }`. */
export function outline(value: unknown, depth = 0): unknown {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string') return `(text, ${value.length} characters)`;
  if (typeof value !== 'object' || isRawNumber(value)) return '(number)';
  const entries = Object.entries(value);
  if (depth === OUTLINE.depth_max) return `(${entries.length} members)`;
  const shown = entries.slice(0, OUTLINE.members_max);
  const rest = entries.length - shown.length;
  const outlines = shown.map(
    ([name, one]) => [cutText(name, OUTLINE.name_length_max), outline(one, depth + 1)] as const,
  );
  if (Array.isArray(value)) {
    return [...outlines.map(([, one]) => one), ...(rest > 0 ? [`(and ${rest} more)`] : [])];
  }
  return Object.fromEntries([...outlines, ...(rest > 0 ? [['(more)', `(${rest} members)`] as const] : [])]);
}

/** Measures the time since this call, in milliseconds with two decimals. */
export function startTimer(): () => number {
  const started = performance.now();
  return () => Math.round((performance.now() - started) * 100) / 100;
}

/** `parseJsonToSendOn` keeps a long number as such an object. */
function isRawNumber(value: object): boolean {
  return Object.getPrototypeOf(value) === null && 'rawJSON' in value;
}

/** Returns the beginning of a foreign text, as the database can store it: without the character zero and half characters. */
export function cutText(text: string, length_max: number): string {
  return text.slice(0, length_max).replaceAll('\0', '\ufffd').toWellFormed();
}

import { expect } from 'bun:test';
import { contractProblems } from '../support/contract.ts';
import contract from './data/wire-contract.json' with { type: 'json' };

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const isWithin = (value: unknown, max: number) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max;
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The types of the specification's tables, with a check for each. */
const TYPES = {
  string: (value: unknown) => typeof value === 'string',
  RFC3339: (value: unknown) => typeof value === 'string' && RFC_3339.test(value) && !Number.isNaN(Date.parse(value)),
  integer: Number.isSafeInteger,
  u32: (value: unknown) => isWithin(value, 2 ** 32 - 1),
  // The range that a JSON number holds exactly.
  u64: (value: unknown) => isWithin(value, Number.MAX_SAFE_INTEGER),
  boolean: (value: unknown) => typeof value === 'boolean',
  object: isObject,
  any: () => true,
  'string or null': (value: unknown) => value === null || typeof value === 'string',
  'integer or null': (value: unknown) => value === null || Number.isSafeInteger(value),
};

/** A type as the specification writes it. */
export type Shape =
  | keyof typeof TYPES
  | { kind: 'list'; of: Shape }
  | { kind: 'map'; of: Shape }
  | { kind: 'record'; members: Record<string, Shape>; reference: string | undefined };

/** array<…> */
export const listOf = (of: Shape): Shape => ({ kind: 'list', of });
/** map<string,…> */
export const mapOf = (of: Shape): Shape => ({ kind: 'map', of });
/**
 * An object with exactly these members. Those that end in "?" are optional, and none is null unless its type says so.
 * `reference`: the reference API's shape, whose other members are allowed because old clients need them.
 */
export const record = (members: Record<string, Shape>, reference?: string): Shape => ({
  kind: 'record',
  members,
  reference,
});

export const EMPTY = record({});

/** Fails unless a value has exactly this shape. */
export function expectShape(value: unknown, shape: Shape): void {
  expect(shapeProblems(shape, value)).toEqual([]);
}

/** Returns where a value does not have the shape; an empty list if it does. */
export function shapeProblems(shape: Shape, value: unknown, place = 'it'): string[] {
  if (typeof shape === 'string') return TYPES[shape](value) ? [] : [`${place}: no ${shape}, but ${show(value)}`];
  if (shape.kind === 'list') {
    if (!Array.isArray(value)) return [`${place}: no array, but ${show(value)}`];
    return value.flatMap((item, index) => shapeProblems(shape.of, item, `${place}[${index}]`));
  }
  if (!isObject(value)) return [`${place}: no object, but ${show(value)}`];
  const values = Object.entries(value);
  if (shape.kind === 'map') return values.flatMap(([key, item]) => shapeProblems(shape.of, item, `${place}.${key}`));
  const members = Object.entries(shape.members);
  const missing = members.filter(([name]) => !name.endsWith('?') && !Object.hasOwn(value, name));
  return [
    ...missing.map(([name]) => `${place}.${name}: missing`),
    ...values.flatMap(([name, item]) => {
      const member = shape.members[name] ?? shape.members[`${name}?`];
      if (member !== undefined) return shapeProblems(member, item, `${place}.${name}`);
      return problemsOfExtra(shape.reference, name, item, `${place}.${name}`);
    }),
  ];
}

function problemsOfExtra(reference: string | undefined, name: string, value: unknown, place: string): string[] {
  const schemas = contract.schemas as unknown as Record<string, { object: Record<string, string> }>;
  const known = reference === undefined ? {} : schemas[reference]?.object;
  if (known === undefined) throw new Error(`the reference API has no shape ${reference}`);
  const member = known[name] ?? known[`${name}?`];
  return member === undefined ? [`${place}: not specified`] : contractProblems(member, value, place);
}

/** Yields variations of a good body with what is wrong: a missing member, or a member of another type. */
export function* wrongBodies(shape: Shape, sample: unknown, place = 'it'): Generator<[string, unknown]> {
  for (const wrong of WRONG[typeof shape === 'string' ? shape : shape.kind] ?? []) {
    yield [`${place}: ${show(wrong)}`, wrong];
  }
  if (typeof shape === 'string') return;
  if (shape.kind === 'list' && Array.isArray(sample)) {
    for (const [what, item] of wrongBodies(shape.of, sample[0], `${place}[0]`)) yield [what, [item]];
  } else if (shape.kind !== 'list' && isObject(sample)) {
    const whole: Record<string, unknown> = { ...sample };
    for (const [name, value] of Object.entries(whole)) {
      const { [name]: _, ...rest } = whole;
      if (shape.kind === 'record' && Object.hasOwn(shape.members, name)) yield [`${place}.${name}: missing`, rest];
      const member = shape.kind === 'map' ? shape.of : (shape.members[name] ?? shape.members[`${name}?`] ?? 'any');
      for (const [what, wrong] of wrongBodies(member, value, `${place}.${name}`))
        yield [what, { ...rest, [name]: wrong }];
    }
  }
}

/** JSON values of another type. */
const WRONG: Record<string, unknown[]> = {
  string: [7, { a: 'text' }],
  integer: ['7', 7.5],
  u32: ['7', 7.5, -1, 2 ** 32],
  u64: ['7', 7.5, -1],
  boolean: ['true', 1],
  object: ['text', []],
  list: ['text', {}],
  map: ['text', []],
  record: ['text', []],
};

/** Returns a sample without its optional members. */
export function withoutOptional(shape: Shape, sample: unknown): unknown {
  if (typeof shape === 'string' || shape.kind === 'map') return sample;
  if (shape.kind === 'list') return (sample as unknown[]).map((item) => withoutOptional(shape.of, item));
  const required = Object.entries(shape.members).filter(([name]) => !name.endsWith('?'));
  const members = sample as Record<string, unknown>;
  return Object.fromEntries(required.map(([name, member]) => [name, withoutOptional(member, members[name])]));
}

function show(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 80) ?? 'nothing';
}

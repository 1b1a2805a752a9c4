import { expect } from 'bun:test';
import { contractProblems } from '../support/contract.ts';
import contract from './data/wire-contract.json' with { type: 'json' };

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const isWithin = (value: unknown, max: number) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max;
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The types that the specification's tables name, and what is of them. */
const TYPES = {
  string: (value: unknown) => typeof value === 'string',
  RFC3339: (value: unknown) => typeof value === 'string' && RFC3339.test(value) && !Number.isNaN(Date.parse(value)),
  integer: Number.isSafeInteger,
  u32: (value: unknown) => isWithin(value, 2 ** 32 - 1),
  // As much of it as a JSON number holds.
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
  | { kind: 'record'; members: Record<string, Shape>; field: string | undefined };

/** array<…> */
export const listOf = (of: Shape): Shape => ({ kind: 'list', of });
/** map<string,…> */
export const mapOf = (of: Shape): Shape => ({ kind: 'map', of });
/**
 * An object with exactly these members; those that end in "?" may be left out, and none is null unless its type says
 * so. `field`: the shape of the field's contract, whose members old clients need besides.
 */
export const record = (members: Record<string, Shape>, field?: string): Shape => ({ kind: 'record', members, field });

export const EMPTY = record({});

/** Fails unless a value is exactly of a shape. */
export function expectShape(value: unknown, shape: Shape): void {
  expect(shapeProblems(shape, value)).toEqual([]);
}

/** Where a value is not of a shape; empty when it is. */
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
      return problemsOfExtra(shape.field, name, item, `${place}.${name}`);
    }),
  ];
}

function problemsOfExtra(field: string | undefined, name: string, value: unknown, place: string): string[] {
  const schemas = contract.schemas as unknown as Record<string, { object: Record<string, string> }>;
  const known = field === undefined ? {} : schemas[field]?.object;
  if (known === undefined) throw new Error(`the field's contract has no ${field}`);
  const member = known[name] ?? known[`${name}?`];
  return member === undefined ? [`${place}: not specified`] : contractProblems(member, value, place);
}

/** Bodies near a good one, each with what is wrong: a required member left out, or a member of another type. */
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

/** Values of JSON that are not of a type. */
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

/** A sample without the members that may be left out. */
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

import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

const TIMESTAMP = '2026-01-01T12:00:00.000Z';
/** The name space of ids in examples (RFC 9562, UUIDv5). */
const IDS = '00000000-0000-4000-8000-000000000000';

export interface Examples {
  /** What a field looks like, by its name. */
  values: Record<string, unknown>;
  /** What stands in front of the colon, by the name of the map. */
  keys: Record<string, string>;
}

/**
 * A value of a shape, as one might meet it. Fields are filled by their names; what a name does not say, or not for this
 * shape, is filled by the shape. What a client may leave out is left out of what he sends.
 */
export function exampleOf(
  shape: TSchema,
  examples: Examples,
  { name = '', is_sent = false }: { name?: string; is_sent?: boolean } = {},
): unknown {
  if (Array.isArray(shape.examples)) return shape.examples[0];
  const known = examples.values[name];
  if (known !== undefined && Value.Check(shape, known)) return known;
  if ('const' in shape) return shape.const;
  if (Array.isArray(shape.anyOf)) return exampleOf(shape.anyOf[0], examples, { name, is_sent });
  switch (shape.type) {
    case 'object':
      return objectOf(shape, examples, name, is_sent);
    case 'array':
      return [exampleOf(shape.items, examples, { name, is_sent })];
    case 'string':
      return textOf(shape, name);
    case 'integer':
    case 'number':
      return Math.max(shape.minimum ?? 0, Math.min(shape.maximum ?? 1, 1));
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return known ?? {};
  }
}

function objectOf(shape: TSchema, examples: Examples, name: string, is_sent: boolean): Record<string, unknown> {
  const entries = Object.values<TSchema>(shape.patternProperties ?? {}).map((value): [string, unknown] => [
    examples.keys[name] ?? 'name',
    exampleOf(value, examples, { name, is_sent }),
  ]);
  const members = Object.entries<TSchema>(shape.properties ?? {});
  const needed = members.filter(([member]) => shape.required?.includes(member));
  const shown = is_sent && needed.length > 0 ? needed : members;
  return Object.fromEntries([
    ...entries,
    ...shown.map(([member, value]) => [member, exampleOf(value, examples, { name: member, is_sent })]),
  ]);
}

function textOf(shape: TSchema, name: string): string {
  if (shape.format === 'uuid') return Bun.randomUUIDv5(name, IDS);
  const is_moment = name.endsWith('_ts') || name === 'ts' || name === 'exp';
  const candidates = is_moment ? [TIMESTAMP, 'text', '0'] : ['text', '0'];
  return candidates.find((text) => Value.Check(shape, text)) ?? '';
}

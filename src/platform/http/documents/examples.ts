import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

const TIMESTAMP = '2026-01-01T12:00:00.000Z';
/** The namespace of ids in examples (RFC 9562, UUIDv5). */
const IDS = '00000000-0000-4000-8000-000000000000';

export interface Examples {
  /** Values of fields, by name. */
  values: Record<string, unknown>;
  /** Keys of maps, by the name of the map. */
  keys: Record<string, string>;
}

/**
 * Returns a realistic value of a shape. A field gets the example for its name if that has its shape, else one made from the
 * shape. Optional fields are left out of requests.
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

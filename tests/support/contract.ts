import contract from '../contract/data/wire-contract.json' with { type: 'json' };

/** A shape as the contract writes it: a name, or an object with one of these members. */
type Shape = string | { object: Record<string, Shape> } | { array: Shape } | { map: Shape } | { enum: string[] };

/** The operations of the reference API's clients, as its contract has them, without those out of scope. */
export interface ContractOperation {
  operation: string;
  method: string;
  path: string;
  response: Record<string, Shape>;
}

export const OPERATIONS: readonly ContractOperation[] = contract.operations as unknown as ContractOperation[];
const SCHEMAS = contract.schemas as unknown as Record<string, Shape>;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Returns the places where a value does not match a shape. Members that the shape does not name are allowed. */
export function contractProblems(shape: Shape, value: unknown, path = 'it'): string[] {
  if (typeof shape === 'string') return problemsOfName(shape, value, path);
  if ('enum' in shape) return shape.enum.includes(value as string) ? [] : [`${path}: not one of ${shape.enum}`];
  if ('array' in shape) {
    if (!Array.isArray(value)) return [`${path}: no array`];
    return value.flatMap((item, index) => contractProblems(shape.array, item, `${path}[${index}]`));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path}: no object`];
  const members = new Map(Object.entries(value));
  if ('map' in shape) return [...members].flatMap(([key, item]) => contractProblems(shape.map, item, `${path}.${key}`));
  return Object.entries(shape.object).flatMap(([key, member]) => {
    const name = key.replace(/\?$/, '');
    if (!members.has(name)) return key.endsWith('?') ? [] : [`${path}.${name}: missing`];
    return contractProblems(member, members.get(name), `${path}.${name}`);
  });
}

function problemsOfName(name: string, value: unknown, path: string): string[] {
  const [kind = '', format] = name.split(':');
  const schema = SCHEMAS[name];
  if (schema !== undefined) return contractProblems(schema, value, path);
  const is_right = {
    any: true,
    // Unknown members are harmless here; the check of the exact shape reports them.
    empty: typeof value === 'object' && value !== null,
    string: typeof value === 'string',
    boolean: typeof value === 'boolean',
    integer: Number.isSafeInteger(value),
    number: typeof value === 'number',
  }[kind];
  if (is_right === undefined) return [`${path}: the contract has no ${name}`];
  if (!is_right) return [`${path}: no ${kind}, but ${JSON.stringify(value)}`];
  if (format === 'uuid' && !UUID.test(String(value))) return [`${path}: no UUID, but ${value}`];
  if (format === 'date-time' && !DATE_TIME.test(String(value))) return [`${path}: no RFC 3339 time, but ${value}`];
  return [];
}

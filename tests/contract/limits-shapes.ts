type ShapeType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';

/** A shape in the API document. */
export interface Shape {
  description?: string;
  type?: ShapeType | [ShapeType, 'null'];
  properties?: Record<string, Shape>;
  required?: string[];
  patternProperties?: Record<string, Shape>;
  maxProperties?: number;
  items?: Shape;
  minItems?: number;
  maxItems?: number;
  enum?: string[];
  anyOf?: Shape[];
  const?: string;
  format?: string;
  pattern?: string;
  examples?: string[];
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
}

/** A field of a request. `path` leads to it, in lists and maps to one entry; that of the body itself is empty. */
export interface Field {
  path: string[];
  shape: Shape;
  presence: 'required' | 'optional' | 'entry';
}

type Members = Record<string, unknown>;

/** Lists a body and everything in it. A map's entry is that of the given body if it has one. */
export function listFields(shape: Shape, body: unknown, at: Pick<Field, 'path' | 'presence'> = BODY): Field[] {
  const below = Object.entries(membersOf(shape, body)).flatMap(([name, member]) => {
    const path = [...at.path, name];
    return listFields(member, valueAt(body, [name]), { path, presence: presenceOf(shape, name) });
  });
  return [{ ...at, shape }, ...below];
}

const BODY: Pick<Field, 'path' | 'presence'> = { path: [], presence: 'entry' };

function presenceOf({ properties, required = [] }: Shape, name: string): Field['presence'] {
  if (!properties) return 'entry';
  return required.includes(name) ? 'required' : 'optional';
}

/** Returns the value at a path of a body, or undefined. */
export function valueAt(body: unknown, path: string[]): unknown {
  return path.reduce<unknown>((value, name) => (value as Members | undefined)?.[name], body);
}

/** Returns the body with another value at a path, or with none (undefined). Missing objects on the way are created. */
export function putValue(shape: Shape, body: unknown, [name, ...rest]: string[], value: unknown): unknown {
  if (name === undefined) return value;
  const around = (body ?? sampleOf(shape)) as Members;
  const member = membersOf(shape, around)[name];
  if (!member) throw new Error(`the shape has no ${name}`);
  const inner = putValue(member, around[name], rest, value);
  if (Array.isArray(around)) return around.length === 0 ? [inner] : around.with(Number(name), inner);
  return { ...around, [name]: inner };
}

/** Returns a minimal value of a shape, with texts and numbers that are not empty. */
export function sampleOf(shape: Shape): unknown {
  const [choice] = choicesOf(shape);
  if (choice !== undefined) return choice;
  switch (shape.type) {
    case 'object':
      return Object.fromEntries((shape.required ?? []).map((name) => [name, sampleOf(shape.properties?.[name] ?? {})]));
    case 'array':
      return Array.from({ length: shape.minItems ?? 0 }, () => sampleOf(shape.items ?? {}));
    case 'string':
      return shape.format === 'uuid' ? crypto.randomUUID() : 'x'.repeat(Math.max(1, shape.minLength ?? 0));
    case 'integer':
    case 'number':
      return Math.max(1, shape.minimum ?? 0);
    case 'boolean':
      return true;
    default:
      return {};
  }
}

function membersOf(shape: Shape, body: unknown): Record<string, Shape> {
  if (shape.items) return { 0: shape.items };
  const [entry] = Object.entries(shape.patternProperties ?? {});
  if (!entry) return shape.properties ?? {};
  const [name = 'x'] = Object.keys((body as Members | undefined) ?? {});
  return { [name]: entry[1] };
}

function choicesOf({ enum: listed, anyOf }: Shape): string[] {
  return listed ?? (anyOf ?? []).flatMap((one) => one.const ?? []);
}

/** Returns a nullable shape without its null. */
function withoutNull(shape: Shape): Shape | undefined {
  return Array.isArray(shape.type) ? { ...shape, type: shape.type[0] } : undefined;
}

/** Returns the part of a field that has no limit; undefined if all have one. */
export function findUnlimited(field: Field): string | undefined {
  const shape = withoutNull(field.shape) ?? field.shape;
  if (choicesOf(shape).length > 0) return undefined;
  const { type, minimum, maximum, maxLength, format, maxItems } = shape;
  if (shape.anyOf) return 'a union of more than words';
  if (type === 'string' && maxLength === undefined && format !== 'uuid') return 'a text of any length';
  if ((type === 'integer' || type === 'number') && (minimum === undefined || maximum === undefined))
    return 'any number';
  if (type === 'array' && maxItems === undefined) return 'a list of any length';
  if (!shape.patternProperties) return undefined;
  if (shape.maxProperties === undefined) return 'a map of any size';
  return longestName(shape) === undefined ? 'names of any length' : undefined;
}

const NAME_LENGTH_MAX = 65_536;

/** Returns the length of the longest name that a map accepts; undefined if there is none. */
function longestName(shape: Shape): number | undefined {
  if (acceptsName(shape, 'x'.repeat(NAME_LENGTH_MAX))) return undefined;
  let [accepted, refused] = [0, NAME_LENGTH_MAX];
  while (refused - accepted > 1) {
    const length = Math.floor((accepted + refused) / 2);
    if (acceptsName(shape, 'x'.repeat(length))) accepted = length;
    else refused = length;
  }
  return accepted;
}

function acceptsName({ patternProperties = {} }: Shape, name: string): boolean {
  return Object.keys(patternProperties).some((pattern) => new RegExp(pattern).test(name));
}

/** Values to try in a field. Undefined leaves it out. */
export interface Trial {
  good: unknown[];
  bad: unknown[];
}

/** Lists the smallest, an empty and the largest value; one more, one less, and other types. `value`: a good one. */
export function listTrials({ shape, presence }: Field, value: unknown): Trial {
  const type_trials = trialsOfType(shape, value ?? sampleOf(shape));
  const map_trials = shape.patternProperties ? trialsOfMap(shape, value) : { good: [], bad: [] };
  const good = [...type_trials.good, ...map_trials.good];
  const bad = [...type_trials.bad, ...map_trials.bad];
  // An optional member that is null counts as left out.
  if (presence === 'optional') return { good: [...good, undefined, null], bad: bad.filter((one) => one !== null) };
  return { good, bad: presence === 'required' ? [...bad, undefined] : bad };
}

function trialsOfType(shape: Shape, value: unknown): Trial {
  const inner = withoutNull(shape);
  if (inner) {
    const { good, bad } = trialsOfType(inner, value);
    return { good, bad: bad.filter((one) => one !== null) };
  }
  const choices = choicesOf(shape);
  if (choices.length > 0) return { good: choices, bad: [null, 1, true, {}, [], '', ' ', `${choices[0]}x`] };
  switch (shape.type) {
    case 'object':
      return { good: shape.required ? [value] : [value, {}], bad: [null, 1, true, 'x', [], [{}]] };
    case 'array': {
      const { good, bad } = trialsOfCount(shape, value);
      return { good, bad: [null, 1, true, 'x', {}, { length: 1 }, ...bad] };
    }
    case 'string': {
      const { good, bad } = trialsOfLength(shape);
      return { good, bad: [null, 1, true, {}, [], ['x'], ...bad] };
    }
    case 'integer':
    case 'number': {
      const { minimum: min = 0, maximum: max = 0 } = shape;
      const is_whole = shape.type === 'integer';
      const good = is_whole ? [min, max] : [min, max, min + 0.5];
      // Beyond 2^53 the next number is more than one away.
      const above = Number.isSafeInteger(max) ? max + 1 : max * 1.5;
      const bad = [null, true, '1', '', {}, [], [1], min - 1, above, 1e300, -1e300, ...(is_whole ? [min + 0.5] : [])];
      return min <= 0 && max >= 0 ? { good: [...good, 0], bad } : { good, bad: [...bad, 0] };
    }
    case 'boolean':
      return { good: [true, false], bad: [null, 0, 1, 'true', '', {}, []] };
    default:
      return { good: [null, 0, '', false, [], {}, 'x'.repeat(1_000)], bad: [] };
  }
}

function trialsOfLength({ format, pattern, examples, minLength: min = 0, maxLength: max = 0 }: Shape): Trial {
  const accepts = (text: string) => pattern === undefined || new RegExp(pattern).test(text);
  const example = accepts('x'.repeat(min)) ? undefined : examples?.[0];
  const id = format === 'uuid' ? crypto.randomUUID() : example;
  if (id !== undefined) {
    return { good: [id, id.toUpperCase()], bad: ['', 'x', id.slice(-35), `${id}0`, ` ${id}`, id.replaceAll('-', '')] };
  }
  const good = [min, max].map((length) => 'x'.repeat(length));
  if (!good.every(accepts)) throw new Error(`${pattern} refuses its own lengths`);
  return { good, bad: ['x'.repeat(max + 1), ...(min > 0 ? ['x'.repeat(min - 1)] : [])] };
}

function trialsOfCount({ items = {}, minItems: min = 0, maxItems: max = 0 }: Shape, value: unknown): Trial {
  const [first = sampleOf(items)] = (value as unknown[] | undefined) ?? [];
  const listOf = (length: number) => Array.from({ length }, () => first);
  return { good: [listOf(min), listOf(max)], bad: [listOf(max + 1), ...(min > 0 ? [listOf(min - 1)] : [])] };
}

/** Tries the number of entries of a map, and the lengths of their names. */
function trialsOfMap(shape: Shape, value: unknown): Trial {
  const { maxProperties: max = 0, patternProperties = {} } = shape;
  const [entry = Object.values(patternProperties).map(sampleOf)[0]] = Object.values((value as Members) ?? {});
  const mapOf = (size: number) => Object.fromEntries(Array.from({ length: size }, (_, index) => [`x${index}`, entry]));
  const longest = longestName(shape) ?? 0;
  const named = (name: string) => ({ [name]: entry });
  return {
    good: [{}, mapOf(max), named('x'.repeat(longest)), ...(acceptsName(shape, '') ? [named('')] : [])],
    bad: [mapOf(max + 1), named('x'.repeat(longest + 1)), ...(acceptsName(shape, '') ? [] : [named('')])],
  };
}

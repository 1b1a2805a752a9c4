import { FormatRegistry, type SchemaOptions, type Static, type TSchema, Type } from '@sinclair/typebox';
import { type TypeCheck, TypeCompiler, type ValueError, ValueErrorType } from '@sinclair/typebox/compiler';
import { isUuid } from '../../shared/uuid.ts';

export { isUuid };

/** Registers the formats of shapes. Call it again after loading a module that replaces them. */
export function registerFormats(): void {
  FormatRegistry.Set('uuid', isUuid);
}
registerFormats();

// Shapes that several features share on the wire.

export const Uuid = Type.String({ format: 'uuid' });
/** RFC 3339, UTC, with milliseconds. */
export const Timestamp = Type.String({ description: 'RFC 3339, UTC, with milliseconds.' });
/** A u64 that a JSON number can hold. */
export const U64 = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** Any u64; beyond 2^53 the nearest one that JavaScript has. For values that are compared, not stored. */
export const AnyU64 = Type.Integer({ minimum: 0, maximum: 2 ** 64 });
export const U32 = Type.Integer({ minimum: 0, maximum: 4_294_967_295 });
export const I32 = Type.Integer({ minimum: -2_147_483_648, maximum: 2_147_483_647 });
/** A text with rules of its own. Longer than those allow, so that their errors name what is too long. */
export const Text = Type.String({ maxLength: 1_024 });
export const Empty = Type.Object({});
export const WatchIndex = Type.Object({ index: Type.String() }, { title: 'WatchIndex' });
export const WatchQuery = Type.Object({
  watch_index: Type.Optional(
    Type.String({ maxLength: 64, description: 'The index of an earlier answer: waits for the next change.' }),
  ),
});
const LIST = 'x-list';
/** A list in a query: values separated by commas, or a repeated parameter. Handlers get one text with commas. */
export const QueryList = (options: { maxLength: number; description: string }) =>
  Type.String({ ...options, [LIST]: true });
export const isList = (shape: TSchema): boolean => shape[LIST] === true;
/** One of several texts, with a name of its own in the API document. */
export const oneOf = <const Value extends string>(title: string, values: readonly Value[], options?: SchemaOptions) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { ...options, title },
  );
/** An object whose members may have any names, of up to 1,024 characters, and have values of one shape. */
export const mapOf = <Shape extends TSchema>(shape: Shape, entries_max: number) =>
  Type.Record(Type.String({ pattern: '^[\\s\\S]{0,1024}$' }), shape, {
    maxProperties: entries_max,
    additionalProperties: false,
  });
/** The parts of a request's content that are wrong (specification: Validation error). */
export const ValidationErrors = Type.Object(
  { errors: Type.Array(Type.Object({ path: Type.Array(Type.String()) }, { title: 'ValidationError' })) },
  { title: 'ValidationErrors' },
);

/** A problem of a value, and where it is. */
export interface ShapeProblem {
  path: string[];
  message: string;
}

/** A shape that is compiled to check many values. */
export interface CompiledShape<Shape extends TSchema> {
  accepts(value: unknown): value is Static<Shape>;
  /** Returns the first problems of a value that was not accepted: one for each part, at most eight. */
  problems(value: unknown): ShapeProblem[];
}

const PROBLEMS_MAX = 8;

/** Kept, because routes share shapes, and all routes are prepared once more for https. */
const checks = new WeakMap<TSchema, TypeCheck<TSchema>>();

export function compileShape<Shape extends TSchema>(shape: Shape): CompiledShape<Shape> {
  const check = checks.get(shape) ?? TypeCompiler.Compile<TSchema>(shape);
  checks.set(shape, check);
  return {
    accepts: (value): value is Static<Shape> => check.Check(value),
    problems(value) {
      const problems = new Map<string, ShapeProblem>();
      for (const error of check.Errors(value)) {
        const { path } = error;
        if (!problems.has(path)) problems.set(path, { path: path.split('/').slice(1), message: messageOf(error) });
        if (problems.size === PROBLEMS_MAX) break;
      }
      return [...problems.values()];
    },
  };
}

const ANY_OF = new Intl.ListFormat('en', { type: 'disjunction' });

/** Returns the message of a problem; of a union, for the choice of the value's own type, else for all choices. */
function messageOf({ type, schema, value, errors, message }: ValueError): string {
  if (type === ValueErrorType.ObjectRequiredProperty) return 'It is missing';
  const [names_pattern] = Object.keys(schema.patternProperties ?? {});
  if (type === ValueErrorType.ObjectAdditionalProperties && names_pattern !== undefined) {
    return `Expected a name that matches ${names_pattern}`;
  }
  if (type !== ValueErrorType.Union) return message;
  const choices: TSchema[] = schema.anyOf;
  const index = choices.findIndex((choice) => !('const' in choice) && choice.type === typeof value);
  const names = choices.map((choice) => ('const' in choice ? JSON.stringify(choice.const) : String(choice.type)));
  return errors[index]?.First()?.message ?? `Expected ${ANY_OF.format(names)}`;
}

/** Returns the message of a problem, such as `expected string`, as part of a sentence. */
export function describeMessage({ message }: ShapeProblem): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}

/** Returns `"lobby.tags.0": expected string`, as part of a sentence. */
export function describeProblem(problem: ShapeProblem): string {
  const { path } = problem;
  return path.length === 0 ? describeMessage(problem) : `"${path.join('.')}": ${describeMessage(problem)}`;
}

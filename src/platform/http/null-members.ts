import { type TSchema, TypeGuard } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

/**
 * Returns a body without those members that are `null` although its shape has an optional member of another type there, in
 * nested objects, too. Many clients write `null` for what they leave out, which the reference API allows.
 */
export function leaveOutNulls(shape: TSchema, value: unknown): unknown {
  if (TypeGuard.IsArray(shape)) {
    return Array.isArray(value) ? value.map((item) => leaveOutNulls(shape.items, item)) : value;
  }
  if (!isObject(value)) return value;
  const shapeOf = membersOf(shape);
  if (!shapeOf) return value;
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const of_member = shapeOf(name);
    if (!of_member) return [[name, member]];
    const is_left_out = member === null && TypeGuard.IsOptional(of_member) && !Value.Check(of_member, null);
    return is_left_out ? [] : [[name, leaveOutNulls(of_member, member)]];
  });
  return Object.fromEntries(members);
}

/** Returns a function that finds the shape of a member of an object by its name; undefined if the shape is of no object. */
function membersOf(shape: TSchema): ((name: string) => TSchema | undefined) | undefined {
  if (TypeGuard.IsObject(shape)) {
    return (name) => (Object.hasOwn(shape.properties, name) ? shape.properties[name] : undefined);
  }
  if (TypeGuard.IsRecord(shape)) return () => Object.values(shape.patternProperties)[0];
  return undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

import { isDeepStrictEqual } from 'node:util';
import { assert } from '../../errors.ts';

/** A part of the API document, as JSON. */
export type Part = { [name: string]: unknown };

/** The named shapes of the API document. */
export class NamedShapes {
  readonly schemas: Record<string, Part> = {};

  /** Moves a shape, and every titled one inside it, to `schemas`. Returns it with references instead of them. */
  move(shape: Part, name: string): Part {
    const { title = name, ...rest } = shape;
    const moved = this.#moveInside(rest);
    return shape.type === 'object' ? this.#add(String(title), moved) : moved;
  }

  /** Returns a shape with a reference instead of every titled one, itself included. */
  moveTitled({ title, ...shape }: Part): Part {
    const moved = this.#moveInside(shape);
    return typeof title === 'string' ? this.#add(title, moved) : moved;
  }

  #moveInside(shape: Part): Part {
    const entries = Object.entries(shape).map(([name, value]) => [name, this.#moveValue(value)]);
    return Object.fromEntries(entries);
  }

  #moveValue(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#moveValue(item));
    if (!isPart(value)) return value;
    const { title } = value;
    // A member named "title" is a shape, not a text.
    return typeof title === 'string' ? this.moveTitled(value) : this.#moveInside(value);
  }

  #add(title: string, shape: Part): Part {
    const known = this.schemas[title];
    assert(known === undefined || isDeepStrictEqual(known, shape), `the name "${title}" is that of one shape`);
    this.schemas[title] = shape;
    return { $ref: `#/components/schemas/${title}` };
  }
}

/** TypeBox's pattern for maps with any keys. */
const ANY_KEY = '^(.*)$';

/**
 * Returns a shape as generators of clients understand it: unions of texts as lists of texts (`enum`), maps by the shape of
 * their values (`additionalProperties`). Elysia's generator does so for some unions, but drops their titles.
 */
export function writePlainly<Shape>(shape: Shape): Shape;
export function writePlainly(shape: unknown): unknown {
  if (Array.isArray(shape)) return shape.map(writePlainly);
  if (!isPart(shape)) return shape;
  const { anyOf, patternProperties, ...rest } = shape;
  const texts = Array.isArray(anyOf) ? anyOf.map((one) => one.const) : [undefined];
  if (texts.every((text) => typeof text === 'string')) return { ...rest, type: 'string', enum: texts };
  if (isPart(patternProperties) && ANY_KEY in patternProperties) {
    return { ...rest, additionalProperties: writePlainly(patternProperties[ANY_KEY]) };
  }
  return mapMembers(shape, writePlainly);
}

/** Keeps the symbols by which TypeBox recognizes its shapes. */
const mapMembers = (shape: Part, map: (value: unknown) => unknown): Part => ({
  ...shape,
  ...Object.fromEntries(Object.entries(shape).map(([name, value]) => [name, map(value)])),
});

const isPart = (value: unknown): value is Part => typeof value === 'object' && value !== null;

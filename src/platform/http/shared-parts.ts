import { isDeepStrictEqual } from 'node:util';
import { assert } from '../errors.ts';

/** A part of the API document, as JSON. */
export type Part = { [name: string]: unknown };

/** The named shapes of the API document. */
export class NamedShapes {
  readonly schemas: Record<string, Part> = {};

  /** Moves a shape and every one inside it that has a title to `schemas`. Returns it with references in their places. */
  move(shape: Part, name: string): Part {
    const { title = name, ...rest } = shape;
    const moved = this.#moveInside(rest);
    return shape.type === 'object' ? this.#add(String(title), moved) : moved;
  }

  #moveInside(shape: Part): Part {
    const entries = Object.entries(shape).map(([name, value]) => [name, this.#moveValue(value)]);
    return Object.fromEntries(entries);
  }

  #moveValue(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#moveValue(item));
    if (!isPart(value)) return value;
    const { title, ...rest } = value;
    // A member that is called "title" is a shape, not a text.
    if (typeof title !== 'string') return this.#moveInside(value);
    return this.#add(title, this.#moveInside(rest));
  }

  #add(title: string, shape: Part): Part {
    const known = this.schemas[title];
    assert(known === undefined || isDeepStrictEqual(known, shape), `the name "${title}" is that of one shape`);
    this.schemas[title] = shape;
    return { $ref: `#/components/schemas/${title}` };
  }
}

const isPart = (value: unknown): value is Part => typeof value === 'object' && value !== null;

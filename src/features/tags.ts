import { Type } from '@sinclair/typebox';
import { ServiceError } from '../platform/errors.ts';
import { badBody, isStorable } from '../platform/http/json.ts';
import { describeProblem } from '../platform/http/shapes.ts';

/** Limits of the reference API for tags of builds and servers, in bytes of UTF-8 (specification: Tags). */
export const TAGS_MAX = 8;
export const TAG_NAME_BYTES_MAX = 32;
const TAG_BYTES_MAX = 1_024;
/** Holds the largest set of tags within the 16 KiB limit of a request's first line and headers. */
const TAGS_JSON_LENGTH_MAX = 12_288;

const TagName = Type.String({ pattern: `^[\\s\\S]{1,${TAG_NAME_BYTES_MAX}}$` });
const Tag = Type.String({ minLength: 1, maxLength: TAG_BYTES_MAX });
const TAGS_LIMITS = { maxProperties: TAGS_MAX, additionalProperties: false };

export const Tags = Type.Record(TagName, Tag, TAGS_LIMITS);
/** A change of tags. Null removes a tag. */
export const TagsPatch = Type.Record(TagName, Type.Union([Tag, Type.Null()]), TAGS_LIMITS);

/** Throws API_BAD_BODY for a tag that is too long. The shapes count characters, and one may have several bytes. */
export function refuseLongTags(tags: Record<string, string | null>): void {
  const problems = Object.entries(tags).flatMap(([name, value]) => {
    const refuse = (what: string, max: number) => ({
      path: ['tags', name],
      message: `Expected ${what} of at most ${max} bytes in UTF-8`,
    });
    if (Buffer.byteLength(name) > TAG_NAME_BYTES_MAX) return [refuse('a name', TAG_NAME_BYTES_MAX)];
    return Buffer.byteLength(value ?? '') > TAG_BYTES_MAX ? [refuse('a value', TAG_BYTES_MAX)] : [];
  });
  if (problems.length > 0) throw badBody(problems.slice(0, 1).map(describeProblem).join(), { errors: problems });
}

export const TagsQuery = Type.Object({
  tags_json: Type.Optional(
    Type.String({
      maxLength: TAGS_JSON_LENGTH_MAX,
      description:
        'Returns only those with all of these tags: a JSON object of strings, for example {"current":"true"}.',
    }),
  ),
});

/** The query of one thing, which its path names. The specification has the parameter there too. */
export const UnreadTagsQuery = Type.Object({
  tags_json: Type.Optional(
    Type.String({ maxLength: TAGS_JSON_LENGTH_MAX, description: 'Has no effect: the path names what is returned.' }),
  ),
});

/** Parses the tags of a query: a JSON object of strings. Throws API_BAD_QUERY_PARAMETER. */
export function parseTags(tags_json: string | undefined): Record<string, string> {
  if (tags_json === undefined) return {};
  const refuse = () =>
    new ServiceError('API_BAD_QUERY_PARAMETER', { parameter: 'tags_json', error: 'expected a JSON object of strings' });
  let tags: unknown;
  try {
    tags = JSON.parse(tags_json);
  } catch {
    throw refuse();
  }
  if (typeof tags !== 'object' || tags === null || Array.isArray(tags)) throw refuse();
  const pairs = Object.entries(tags);
  if (!pairs.every((pair): pair is [string, string] => pair.every(isText))) throw refuse();
  return Object.fromEntries(pairs);
}

/** Accepts strings that the database can store; JSON can contain others. */
function isText(value: unknown): boolean {
  return typeof value === 'string' && isStorable(value);
}

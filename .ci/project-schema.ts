import type { TSchema } from '@sinclair/typebox';
import { ELSEWHERE, PROJECT_FILE, ProjectShape } from '../src/cli/project/project-shape.ts';
import { VersionConfig } from '../src/features/versions/config.ts';
import { PLAYERS_MAX } from '../src/features/versions/rules.ts';

/** Returns the JSON schema of muster.yaml: the keys of a project, and those of a version that have a use in it. */
export function projectSchema(): object {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: PROJECT_FILE,
    description: 'What "muster deploy" puts live.',
    type: 'object',
    required: ProjectShape.required,
    properties: { ...ProjectShape.properties, ...strict(VersionConfig).properties },
    additionalProperties: false,
  };
}

/** Numbers that the API checks by rules of its own, so that its errors name them. */
const PLAYER_COUNTS = ['max_players', 'max_players_direct', 'max_players_party'];

/** Returns a schema that refuses unknown keys, without the keys that have no use in muster.yaml. */
function strict(shape: TSchema): TSchema {
  const { examples, anyOf, properties, ...rest } = shape;
  if (anyOf?.every((one: TSchema) => one.const !== undefined)) {
    return { ...rest, enum: anyOf.map((one: TSchema) => one.const) } as unknown as TSchema;
  }
  const known = Object.entries<TSchema>(properties ?? {})
    .filter(([key]) => ELSEWHERE[key] === undefined)
    .map(([key, one]) => [key, PLAYER_COUNTS.includes(key) ? { ...one, minimum: 1, maximum: PLAYERS_MAX } : one]);
  return {
    ...rest,
    ...(anyOf && { anyOf: anyOf.map(strict) }),
    ...(rest.items && { items: strict(rest.items) }),
    ...(rest.patternProperties && { patternProperties: mapValues(rest.patternProperties, strict) }),
    ...(properties && { properties: mapValues(Object.fromEntries(known), strict), additionalProperties: false }),
  };
}

function mapValues(values: Record<string, TSchema>, change: (shape: TSchema) => TSchema): Record<string, TSchema> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));
}

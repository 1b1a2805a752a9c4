import { type Static, Type } from '@sinclair/typebox';

export const PROJECT_FILE = 'muster.yaml';
/** The longest display name of a game. */
export const GAME_LENGTH_MAX = 24;

const Build = Type.Object(
  {
    path: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'One .js or .ts file, or the directory of the server. With a dockerfile: the context of its build.',
      }),
    ),
    command: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        minItems: 1,
        description: 'The program of the directory and its arguments. With a dockerfile: replaces its own.',
      }),
    ),
    dockerfile: Type.Optional(
      Type.String({ minLength: 1, description: 'A Dockerfile, built on this machine by docker, podman or buildah.' }),
    ),
    args: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: 'The build arguments of the dockerfile.' }),
    ),
    platform: Type.Optional(
      Type.String({
        pattern: '^linux/[a-z0-9/]+$',
        description:
          "The platform of the image that the dockerfile makes: linux/amd64 or linux/arm64, whichever the service's machine runs. Default: that of this machine.",
      }),
    ),
    isolation: Type.Optional(
      Type.Unsafe<'process' | 'container'>({
        enum: ['process', 'container'],
        description:
          "Whether the server of a directory runs as a process, or in a container on the image of the service's operator. Default: process.",
      }),
    ),
  },
  { additionalProperties: false, description: 'The game server.' },
);

/** The keys of muster.yaml that are not of the version's configuration. */
export const ProjectShape = Type.Object({
  game: Type.String({
    pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
    maxLength: GAME_LENGTH_MAX,
    description:
      'The name of the game: at most 24 lowercase letters, digits and single dashes. A deploy creates a missing game.',
  }),
  build: Type.Optional(Build),
  site: Type.Optional(Type.String({ minLength: 1, description: 'The directory of the static site.' })),
});
export type ProjectShape = Static<typeof ProjectShape>;

/** Keys of other configurations, with what to do instead. */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  dockerfile: 'name it in build.dockerfile, at the top',
  build_args: 'write them in build.args, at the top',
  image: 'name a Dockerfile in build.dockerfile, or a directory in build.path',
  build_command: 'run the command before "muster deploy", and name its output as site',
  build_output: 'name the directory as site, at the top',
  build_env: 'run the build of the site before "muster deploy"',
  lobby_groups: 'write game modes in matchmaker.game_modes',
  scripts: 'leave it out, because it does nothing here',
  engine: 'leave it out, because it does nothing here',
  kv: 'leave it out, because it does nothing here',
  identity: 'leave it out, because it does nothing here',
};

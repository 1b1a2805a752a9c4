import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { isRecord } from '../is-record.ts';
import { parseConfigFile } from './config-file.ts';
import { draftProject } from './draft.ts';
import { keyProblems } from './key-problems.ts';
import { PROJECT_FILE, type ProjectShape } from './project-shape.ts';

/** A server to upload. */
export interface Build {
  /** A script, a directory, or the context of the dockerfile. */
  path: string;
  command?: string[];
  dockerfile?: string;
  args?: Record<string, string>;
  /** Of the image that the dockerfile makes. */
  platform?: string;
  isolation?: 'process' | 'container';
}

/** The configuration of a game. Paths are absolute. */
export interface Project {
  /** The name of its file: muster.yaml, or one of Rivet. */
  file: string;
  /** What the developer should know, a sentence for each. */
  notes: string[];
  game: string;
  build: Build | undefined;
  site: string | undefined;
  /** The version's configuration, in the shapes of the API, without the ids of build and site. */
  config: Record<string, Record<string, unknown>>;
}

/** Reads a directory's muster.yaml, or else its configuration of Rivet. Throws a Failure that names the wrong keys. */
export function readProject(directory: string): Project {
  const file = resolve(directory, PROJECT_FILE);
  if (existsSync(file)) return toProject(parseConfigFile(file), directory, PROJECT_FILE);
  const draft = draftProject(directory);
  if (draft.file === undefined) {
    const reasons = draft.notes.filter((note) => note.startsWith('rivet.')).map((note) => ` (${note})`);
    throw new Failure(`There is no ${PROJECT_FILE} here${reasons.join('')}. Write one: muster init`, EXIT.wrong_use);
  }
  if (draft.portless_server !== undefined) {
    const problem = `${draft.portless_server} has no ports and no game mode`;
    throw new Failure(`${draft.file}: ${problem}. Run "muster init", and complete muster.yaml.`, EXIT.wrong_use);
  }
  return {
    ...toProject(draft.content, directory, draft.file),
    notes: [`read ${draft.file}: ${draft.understood}`, ...draft.notes],
  };
}

/** Returns the game that a directory's muster.yaml names, if it can be read and names one. */
export function readGameName(directory: string): string | undefined {
  const file = resolve(directory, PROJECT_FILE);
  if (!existsSync(file)) return undefined;
  try {
    const content = parseConfigFile(file);
    return isRecord(content) && typeof content.game === 'string' ? content.game : undefined;
  } catch {
    // The commands that need the file say what is wrong with it.
    return undefined;
  }
}

/** Returns the project that the content of a file describes. Throws a Failure that names the wrong keys. */
function toProject(value: unknown, directory: string, file: string): Project {
  if (value === undefined || value === null || (isRecord(value) && Object.keys(value).length === 0)) {
    throw new Failure(`${file} is empty, so there is nothing to deploy: add "build", "site" or both.`, EXIT.wrong_use);
  }
  const problems = keyProblems(value);
  if (problems.length > 0) {
    const lines = problems.map((problem) => `${file}: ${problem}${/[.?]$/.test(problem) ? '' : '.'}`);
    throw new Failure(lines.join('\n'), EXIT.wrong_use);
  }
  // The keys were checked.
  const { game, build, site, ...config } = value as ProjectShape & Project['config'];
  if (!build && config.matchmaker && !hasBuild(config.matchmaker)) {
    const advice = file === PROJECT_FILE ? 'Add "build".' : `Run "muster init", and add "build" to ${PROJECT_FILE}.`;
    throw new Failure(`${file} names no server for its matchmaker. ${advice}`, EXIT.wrong_use);
  }
  if (!build && site === undefined) {
    throw new Failure(
      `${file} has neither "build" nor "site", so there is nothing to deploy: add one.`,
      EXIT.wrong_use,
    );
  }
  return {
    file,
    notes: [],
    game,
    build: build && toBuild(build, directory, file),
    site: site === undefined ? undefined : resolve(directory, site),
    config,
  };
}

/** Returns whether a matchmaker names a build that the service has. */
function hasBuild({ docker, game_modes }: Record<string, unknown>): boolean {
  const dockers = [docker, ...Object.values(game_modes ?? {}).map((mode) => mode.docker)];
  return dockers.some((one) => isRecord(one) && one.image_id !== undefined);
}

function toBuild(build: NonNullable<ProjectShape['build']>, directory: string, file: string): Build {
  const { path, command, dockerfile, args, platform, isolation } = build;
  if (path === undefined && dockerfile === undefined) {
    throw new Failure(`${file}: build.path is missing: name the server's script or directory.`, EXIT.wrong_use);
  }
  if (args && dockerfile === undefined) {
    throw new Failure(
      `${file}: build.args are those of a build.dockerfile, which is missing: add it, or remove them.`,
      EXIT.wrong_use,
    );
  }
  if (platform !== undefined && dockerfile === undefined) {
    throw new Failure(
      `${file}: build.platform is that of a build.dockerfile, which is missing: add it, or remove this.`,
      EXIT.wrong_use,
    );
  }
  if (isolation && dockerfile !== undefined) {
    throw new Failure(
      `${file}: build.isolation is that of a directory; a dockerfile always makes a container: remove build.isolation.`,
      EXIT.wrong_use,
    );
  }
  return {
    path: resolve(directory, path ?? '.'),
    ...(command && { command }),
    ...(dockerfile !== undefined && { dockerfile: resolve(directory, dockerfile) }),
    ...(args && { args }),
    ...(platform !== undefined && { platform }),
    ...(isolation && { isolation }),
  };
}

import { type Dirent, existsSync, readdirSync, readFileSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import {
  createRules,
  dataDirectoryRefusal,
  FILES_MAX,
  IGNORE_FILE,
  TOKEN_FILE,
  type WhyLeftOut,
} from '../../shared/left-out.ts';
import { EXIT, Failure } from '../../terminal/failure.ts';

const NAMED_MAX = 5;

export interface ProjectFile {
  /** From the directory, with slashes. */
  path: string;
  /** Absolute. */
  file: string;
  bytes: number;
  is_executable: boolean;
}

export interface DeployedFiles {
  files: ProjectFile[];
  /** Files and folders that are left out because they usually hold secrets. */
  secrets: string[];
  /** What is left out because it cannot be read: links that lead nowhere, and names that are not UTF-8. */
  unreadable: string[];
}

/** Returns the files of a directory that are deployed, sorted by path. Follows links to files and directories. */
export function listFiles(directory: string): DeployedFiles {
  if (!existsSync(directory))
    throw new Failure(`There is no directory ${directory}: correct its path in muster.yaml.`, EXIT.not_found);
  if (!statSync(directory).isDirectory())
    throw new Failure(`${directory} is not a directory: correct its path in muster.yaml.`, EXIT.wrong_use);
  const whyLeftOut = readRules(directory);
  const files: ProjectFile[] = [];
  const secrets: string[] = [];
  const unreadable: string[] = [];
  const visit = (below: string) => {
    for (const entry of readdirSync(join(directory, below), { withFileTypes: true })) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`;
      const file = join(directory, path);
      const facts = statSync(file, { throwIfNoEntry: false });
      const why_left_out = whyLeftOut(path, facts?.isDirectory() ?? false);
      if (why_left_out !== undefined) {
        if (why_left_out === 'secret') secrets.push(path);
      } else if (facts?.isDirectory()) {
        if (entry.isSymbolicLink()) refuseCircle(directory, path);
        visit(path);
      } else if (facts?.isFile()) add({ path, file }, facts);
      else if (!facts) unreadable.push(path);
    }
  };
  const add = (named: Pick<ProjectFile, 'path' | 'file'>, { size, mode }: Stats) => {
    files.push({ ...named, bytes: size, is_executable: (mode & 0o111) !== 0 });
    if (files.length > FILES_MAX)
      throw new Failure(`${directory} has more than ${FILES_MAX} files: name those to leave out in ${IGNORE_FILE}.`);
  };
  visit('');
  files.sort((one, other) => (one.path < other.path ? -1 : 1));
  return { files, secrets, unreadable };
}

export interface LeftOut {
  /** Files and directories. */
  paths: string[];
  /** Those of them that are left out because they usually hold secrets. */
  secrets: string[];
}

/**
 * Returns what a program that builds an image must not get of a directory. Follows no links, and enters no directory that
 * cannot be read, because the program may leave it out by rules of its own.
 */
export function listLeftOut(directory: string): LeftOut {
  const whyLeftOut = readRules(directory);
  const left_out: LeftOut = { paths: [], secrets: [] };
  const visit = (below: string) => {
    for (const entry of readableEntries(join(directory, below))) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`;
      const why_left_out = whyLeftOut(path, entry.isDirectory());
      if (why_left_out !== undefined) left_out.paths.push(path);
      else if (entry.isDirectory()) visit(path);
      if (why_left_out === 'secret') left_out.secrets.push(path);
    }
  };
  visit('');
  return left_out;
}

function readableEntries(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Returns a sentence about files that were left out because they usually hold secrets; undefined if there are none. */
export function describeSecrets(secrets: string[]): string | undefined {
  if (secrets.length === 0) return undefined;
  return `secrets  left out: ${nameSome(secrets)} (a line like "!.env" in .musterignore deploys a file)`;
}

/** Returns a sentence about files that were left out because they cannot be read; undefined if there are none. */
export function describeUnreadable(unreadable: string[]): string | undefined {
  if (unreadable.length === 0) return undefined;
  return `missing  left out, because a link leads nowhere or a name is not UTF-8: ${nameSome(unreadable)}`;
}

/** Returns the first of some paths, and how many others there are. */
export function nameSome(paths: string[]): string {
  const more = paths.length > NAMED_MAX ? `, and ${paths.length - NAMED_MAX} more` : '';
  return `${paths.slice(0, NAMED_MAX).join(', ')}${more}`;
}

/**
 * Returns the function that says why a path below a directory is not deployed, and returns undefined for one that is. Throws
 * a Failure for the data directory of a service.
 */
function readRules(directory: string): (path: string, is_directory: boolean) => WhyLeftOut | undefined {
  if (existsSync(join(directory, TOKEN_FILE))) throw new Failure(dataDirectoryRefusal(directory), EXIT.wrong_use);
  const ignore_file = join(directory, IGNORE_FILE);
  const whyLeftOut = createRules(existsSync(ignore_file) ? readFileSync(ignore_file, 'utf8') : '');
  return (path, is_directory) => {
    if (is_directory && existsSync(join(directory, path, TOKEN_FILE))) return 'ignored';
    return whyLeftOut(is_directory ? `${path}/` : path);
  };
}

/** Throws a Failure if a link leads to a directory that it is in, so that following it would never end. */
function refuseCircle(directory: string, path: string): void {
  const linked = realpathSync(join(directory, path));
  const holder = realpathSync(dirname(join(directory, path)));
  if (!`${holder}${sep}`.startsWith(`${linked}${sep}`)) return;
  const advice = `name it in ${IGNORE_FILE}, or remove it`;
  throw new Failure(`${path} is a link to a directory that holds it: ${advice}.`, EXIT.wrong_use);
}

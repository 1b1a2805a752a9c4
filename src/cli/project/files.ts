import { existsSync, readdirSync, readFileSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import ignore from 'ignore';
import { FILES_MAX, IGNORE_FILE, NEVER, SECRETS } from '../../client/left-out.ts';
import { EXIT, Failure } from '../failure.ts';

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
}

/** Returns the files of a directory that are deployed, sorted by path. Follows links to files and directories. */
export function listFiles(directory: string): DeployedFiles {
  if (!existsSync(directory))
    throw new Failure(`There is no directory ${directory}: correct its path in muster.yaml.`, EXIT.not_found);
  if (!statSync(directory).isDirectory())
    throw new Failure(`${directory} is no directory: correct its path in muster.yaml.`, EXIT.wrong_use);
  const ignore_file = join(directory, IGNORE_FILE);
  const own = existsSync(ignore_file) ? readFileSync(ignore_file, 'utf8') : '';
  const rules = ignore().add(NEVER).add(SECRETS).add(own);
  const rules_without_secrets = ignore().add(NEVER).add(own);
  const files: ProjectFile[] = [];
  const secrets: string[] = [];
  const visit = (below: string) => {
    for (const entry of readdirSync(join(directory, below), { withFileTypes: true })) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`;
      const file = join(directory, path);
      const facts = statSync(file, { throwIfNoEntry: false });
      const named = facts?.isDirectory() ? `${path}/` : path;
      if (rules.ignores(named)) {
        if (!rules_without_secrets.ignores(named)) secrets.push(path);
      } else if (facts?.isDirectory()) {
        if (entry.isSymbolicLink()) refuseCircle(directory, path);
        visit(path);
      } else if (facts?.isFile()) add({ path, file }, facts);
    }
  };
  const add = (named: Pick<ProjectFile, 'path' | 'file'>, { size, mode }: Stats) => {
    files.push({ ...named, bytes: size, is_executable: (mode & 0o111) !== 0 });
    if (files.length > FILES_MAX)
      throw new Failure(`${directory} has more than ${FILES_MAX} files: name those to leave out in ${IGNORE_FILE}.`);
  };
  visit('');
  files.sort((one, other) => (one.path < other.path ? -1 : 1));
  return { files, secrets };
}

/** Throws a Failure if a link leads to a directory that it is in, so that following it would never end. */
function refuseCircle(directory: string, path: string): void {
  const linked = realpathSync(join(directory, path));
  const holder = realpathSync(dirname(join(directory, path)));
  if (!`${holder}${sep}`.startsWith(`${linked}${sep}`)) return;
  const advice = `name it in ${IGNORE_FILE}, or remove it`;
  throw new Failure(`${path} is a link to a directory that holds it: ${advice}.`, EXIT.wrong_use);
}

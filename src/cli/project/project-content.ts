import { statSync } from 'node:fs';
import { relative } from 'node:path';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { listFiles } from './files.ts';
import { type Build, type Project, readProject } from './project-file.ts';

/** File names of scripts that the service runs. */
const SCRIPT_NAME = /\.[cm]?[jt]s$/;

/** Reads a directory's configuration, and checks the files that it names. Throws a Failure that names what is wrong. */
export function readDeployable(directory: string): Project {
  const project = readProject(directory);
  assertDeployable(project);
  return project;
}

/** Throws a Failure if a project names files that are missing, or that cannot be deployed as it says. */
export function assertDeployable({ file, build, site }: Project): void {
  const missing = [build?.path, build?.dockerfile, site].filter((path) => path !== undefined && !findFacts(path));
  if (missing.length > 0) {
    const names = missing.map((path) => nameOf(path ?? '')).join(', ');
    throw new Failure(`${file} names files that do not exist: ${names}. Correct their paths.`, EXIT.not_found);
  }
  const problem = (build && problemOfBuild(build)) ?? (site === undefined ? undefined : problemOfSite(site));
  if (problem !== undefined) throw new Failure(`${file}: ${problem}.`, EXIT.wrong_use);
}

function problemOfBuild({ path, command, dockerfile, isolation }: Build): string | undefined {
  const name = nameOf(path);
  const is_directory = findFacts(path)?.isDirectory() ?? false;
  if (dockerfile !== undefined) return is_directory ? undefined : `build.path is ${name}, which is not a directory`;
  if (!is_directory) {
    if (!SCRIPT_NAME.test(path)) {
      return `build.path is ${name}, but a file must be a script that ends in .js, .mjs, .cjs, .ts, .mts or .cts; for a program, name its directory, and the program in build.command`;
    }
    if (isolation)
      return 'build.path is one script, which has no build.isolation: remove build.isolation, or name a directory in build.path';
    return command ? 'build.path is one script, which is run itself: remove build.command' : undefined;
  }
  if (!command) return 'build.path is a directory: say in build.command which program of it to run';
  return listFiles(path).files.length > 0 ? undefined : `build.path is ${name}, which has no files to deploy`;
}

function problemOfSite(site: string): string | undefined {
  const name = nameOf(site);
  if (!findFacts(site)?.isDirectory()) return `site is ${name}, which is not a directory`;
  return listFiles(site).files.length > 0 ? undefined : `site is ${name}, which has no files to deploy`;
}

const findFacts = (path: string) => statSync(path, { throwIfNoEntry: false });

const nameOf = (path: string) => relative('.', path) || '.';

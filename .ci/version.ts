// The version of a build: MUSTER_BUILD_VERSION, else the tag of the commit ("v1.2.0" is 1.2.0), else the release of
// package.json with the commit, else, where there is no repository, that release alone.
import { $ } from 'bun';
import manifest from '../package.json' with { type: 'json' };

const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/;

/** Returns the version of a build in a directory. Throws if MUSTER_BUILD_VERSION is not a version. */
export async function versionOf(directory: string, given = process.env.MUSTER_BUILD_VERSION): Promise<string> {
  if (given !== undefined && given !== '') {
    if (!VERSION.test(given)) throw new Error(`MUSTER_BUILD_VERSION is "${given}": expected a version like 1.2.0.`);
    return given;
  }
  const git = async (...command: string[]) => {
    const { exitCode, stdout } = await $`git ${command}`.cwd(directory).quiet().nothrow();
    return exitCode === 0 ? stdout.toString().trim() : undefined;
  };
  const tags = (await git('tag', '--points-at', 'HEAD', '--list', 'v*'))?.split('\n') ?? [];
  const release = tags.map((tag) => tag.slice(1)).find((tag) => VERSION.test(tag));
  const is_changed = ((await git('status', '--porcelain')) ?? '') !== '';
  if (release !== undefined && !is_changed) return release;
  const commit = await git('rev-parse', '--short=8', 'HEAD');
  if (commit === undefined) return manifest.version;
  return `${manifest.version}-dev.g${commit}${is_changed ? '.changed' : ''}`;
}

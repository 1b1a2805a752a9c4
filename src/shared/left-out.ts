// Which files of a folder are not uploaded, by the command line and by the hub.

import ignore from 'ignore';

/** The name of the file in which a folder lists what is not deployed, in the form of .gitignore. */
export const IGNORE_FILE = '.musterignore';
/** Names of files and folders that are never deployed, whatever the ignore file says. */
const NEVER = ['.git', IGNORE_FILE, '.DS_Store', 'muster-data'];
/** A file of every data directory of a service. A directory with such a file is never deployed, whatever its name. */
export const TOKEN_FILE = 'administrator-token';
/** Files that usually hold secrets. A line such as `!.env` in the ignore file deploys one. */
const SECRETS = [
  '.env',
  '.env.*',
  '.npmrc',
  '.netrc',
  '.git-credentials',
  '.ssh',
  '.aws',
  '.kube',
  '*.pem',
  '*.key',
  '*.p12',
  '*.pfx',
  'id_rsa',
  'id_ecdsa',
  'id_ed25519',
];
export const FILES_MAX = 50_000;

/** Why a path is not deployed: it usually holds secrets, or is left out by its name or the ignore file. */
export type WhyLeftOut = 'secret' | 'ignored';

/**
 * Returns the function that says why a path is left out, and returns undefined for one that is deployed. `ignore_file` is
 * the content of the folder's ignore file. A path is relative to the folder, and that of a directory ends with a slash.
 */
export function createRules(ignore_file: string): (path: string) => WhyLeftOut | undefined {
  // Of several patterns that match, the last one counts.
  const rules = ignore().add(SECRETS).add(ignore_file).add(NEVER);
  const rules_without_secrets = ignore().add(ignore_file).add(NEVER);
  return (path) => {
    if (!rules.ignores(path)) return undefined;
    return rules_without_secrets.ignores(path) ? 'ignored' : 'secret';
  };
}

/** Returns a sentence that refuses a folder which is itself a data directory. */
export function dataDirectoryRefusal(folder: string): string {
  return `${folder} is the data directory of a service, which is never deployed: move the game to a folder of its own.`;
}

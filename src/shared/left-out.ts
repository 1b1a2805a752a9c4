// Which files of a folder are not uploaded, by the command line and by the hub.

/** The name of the file in which a folder lists what is not deployed, in the form of .gitignore. */
export const IGNORE_FILE = '.musterignore';
/** Names of files and folders that are never deployed. */
export const NEVER = ['.git', IGNORE_FILE, '.DS_Store', 'muster-data'];
/** A file of every data directory of a service, whatever the name of that. A directory with such a file is never deployed. */
export const TOKEN_FILE = 'administrator-token';
/** Files that usually hold secrets. A line such as `!.env` in the ignore file deploys one. */
export const SECRETS = [
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

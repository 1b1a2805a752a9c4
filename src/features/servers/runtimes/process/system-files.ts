import { readdirSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { hasErrorCode } from '../../../../platform/system/system-errors.ts';

/** Directories and files of the system that programs need to run, if they exist. */
const SYSTEM_FILES = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/opt',
  '/nix/store',
  '/gnu/store',
  // Facts about the machine. What /proc tells of other processes is limited by Landlock too.
  '/proc',
  '/sys/devices/system',
  '/sys/fs/cgroup',
  '/sys/kernel/mm',
  // Names, certificates, libraries, times, and settings of language runtimes; but not all of /etc, which may hold secrets
  // of other programs.
  ...[
    'alternatives',
    'ca-certificates',
    'crypto-policies',
    'dotnet',
    'fonts',
    'gai.conf',
    'group',
    'host.conf',
    'hostname',
    'hosts',
    'java',
    'ld.so.cache',
    'ld.so.conf',
    'ld.so.conf.d',
    'ld.so.preload',
    'ld-musl-aarch64.path',
    'ld-musl-x86_64.path',
    'locale.alias',
    'locale.conf',
    'localtime',
    'mime.types',
    'mono',
    'nsswitch.conf',
    'os-release',
    'passwd',
    'pki',
    'protocols',
    'resolv.conf',
    'rpc',
    'services',
    'ssl',
    'terminfo',
    'timezone',
  ].map((name) => `/etc/${name}`),
];

/** The directories of Debian's packages with settings of Java. Without them, it has no random numbers. */
const JAVA_SETTINGS = /^java-\d+-openjdk$/;

/** Devices that programs use. */
export const DEVICES = ['null', 'zero', 'full', 'random', 'urandom'].map((name) => `/dev/${name}`);

/**
 * Returns the files of the system that programs may read, without a directory that is inside of one of them. `files`: by
 * default those that most programs need.
 */
export function systemFilesExcept(hidden: string, files = [...SYSTEM_FILES, ...listJavaSettings()]): string[] {
  return [...new Set(files.flatMap(realPathOf))].flatMap((path) => without(path, hidden));
}

function listJavaSettings(): string[] {
  return list('/etc').flatMap((name) => (JAVA_SETTINGS.test(name) ? [`/etc/${name}`] : []));
}

/** Returns where a path leads, because some directories are links to others; nothing if that does not exist. */
function realPathOf(path: string): string[] {
  try {
    return [realpathSync(path)];
  } catch {
    return [];
  }
}

/** Returns a path, or what is inside of it if it contains the hidden directory, which is left out. */
function without(path: string, hidden: string): string[] {
  const way = relative(path, hidden);
  if (way === '') return [];
  if (way === '..' || way.startsWith('../')) return [path];
  return list(path).flatMap((name) => without(join(path, name), hidden));
}

/**
 * Lists what is in a directory, without links: one may lead to the hidden directory, and the target of another one is
 * readable if its own path is. A directory that this user may only pass through counts as empty.
 */
function list(directory: string): string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => !entry.isSymbolicLink()).map(({ name }) => name);
  } catch (error) {
    if (hasErrorCode(error, 'EACCES')) return [];
    throw error;
  }
}

import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT, Failure } from '../terminal/failure.ts';
import { environment } from './environment.ts';

/** The service that commands talk to, and their game and namespace without options. */
export interface Profile {
  url: string;
  game?: string;
  namespace?: string;
}

/** Profiles by name. `muster use` chooses one; the first login creates `default`. */
interface Profiles {
  current: string;
  profiles: Record<string, Profile>;
}

const NONE: Profiles = { current: 'default', profiles: {} };
const [PROFILES_FILE, TOKENS_FILE] = ['profiles.json', 'credentials.json'];

export function readProfiles(): Profiles {
  return { ...NONE, ...(read(PROFILES_FILE) as Partial<Profiles>) };
}

export function writeProfiles(profiles: Profiles): void {
  write(PROFILES_FILE, profiles);
}

/** Returns the token for a service; undefined before a login. */
export function readToken(url: string): string | undefined {
  const token = (read(TOKENS_FILE) as Record<string, unknown>)[url];
  return typeof token === 'string' ? token : undefined;
}

/** Stores the token for a service; deletes it for undefined. */
export function writeToken(url: string, token: string | undefined): void {
  const { [url]: _, ...others } = read(TOKENS_FILE) as Record<string, string>;
  write(TOKENS_FILE, token === undefined ? others : { ...others, [url]: token });
}

function read(name: string): object {
  const file = join(environment.config_directory, name);
  if (!existsSync(file)) return {};
  const value = parse(readFileSync(file, 'utf8'));
  if (typeof value === 'object' && value !== null) return value;
  throw new Failure(`${file} is damaged: correct it, or delete it and log in again.`, EXIT.wrong_use);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Replaces a file atomically. Only this user can read it, under any umask. */
function write(name: string, value: object): void {
  mkdirSync(environment.config_directory, { recursive: true, mode: 0o700 });
  const file = join(environment.config_directory, name);
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  chmodSync(unfinished, 0o600);
  renameSync(unfinished, file);
}

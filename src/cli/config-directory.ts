import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT, Failure } from '../terminal/failure.ts';
import { environment } from './environment.ts';
import { isRecord } from './is-record.ts';

/** Reads a file of this user's configuration; an empty object without one. Throws a Failure if it is damaged. */
export function readConfigFile(name: string): Record<string, unknown> {
  const file = join(environment.config_directory, name);
  if (!existsSync(file)) return {};
  const value = parse(readFileSync(file, 'utf8'));
  if (isRecord(value)) return value;
  throw damaged(name);
}

/** Returns the failure of a file of the configuration that was edited by hand, and is not as this program writes it. */
export function damaged(name: string): Failure {
  const file = join(environment.config_directory, name);
  return new Failure(`${file} is damaged: correct it, or delete it and log in again.`, EXIT.wrong_use);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Replaces a file of the configuration atomically. Only this user can read it, under any umask. */
export function writeConfigFile(name: string, value: object): void {
  mkdirSync(environment.config_directory, { recursive: true, mode: 0o700 });
  const file = join(environment.config_directory, name);
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  chmodSync(unfinished, 0o600);
  renameSync(unfinished, file);
}

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { parse } from 'yaml';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { isRecord } from '../is-record.ts';

/** Maps whose keys the game chooses: a key without a value has the defaults. */
const NAMED = new Set(['game_modes', 'regions']);

/**
 * Reads a file of YAML, TOML or JSON, without the keys that have no value. Throws a Failure if it cannot be read, and with
 * the line of a syntax error or of a repeated key.
 */
export function parseConfigFile(file: string): unknown {
  try {
    const text = readFileSync(file, 'utf8');
    // The YAML parser reads JSON too, and unlike JSON.parse refuses repeated keys.
    return withoutNulls(file.endsWith('.toml') ? parseToml(text) : parse(text));
  } catch (error) {
    const is_directory = error instanceof Error && 'code' in error && error.code === 'EISDIR';
    const problem = is_directory ? 'is a directory, not a file' : error instanceof Error ? error.message : error;
    throw new Failure(`${basename(file)}: ${problem}`, EXIT.wrong_use);
  }
}

function withoutNulls(value: unknown, key?: string): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutNulls(one));
  if (!isRecord(value)) return value;
  const is_named = key !== undefined && NAMED.has(key);
  const entries = Object.entries(value).map(([name, one]): [string, unknown] => [name, one ?? (is_named ? {} : null)]);
  return Object.fromEntries(
    entries.filter(([, one]) => one !== null).map(([name, one]) => [name, withoutNulls(one, name)]),
  );
}

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { parse } from 'yaml';
import { EXIT, Failure } from '../../terminal/failure.ts';

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
    throw new Failure(`${basename(file)}: ${error instanceof Error ? error.message : error}`, EXIT.wrong_use);
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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

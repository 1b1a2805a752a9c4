import { EXIT, Failure } from '../terminal/failure.ts';

const UNITS_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** The longest duration of an option: `AbortSignal.timeout` throws for numbers that are not safe integers. */
const DURATION_MS_MAX = 365 * 86_400_000;
const WAIT_DEFAULT = '1h';

/** Reads `30s`, `10m`, `2h` or `1d` as milliseconds; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * (UNITS_MS[unit] ?? 0);
}

/** Reads the time of `--wait`, by default an hour; undefined without the option. Throws Failure. */
export function readWait(wait: string | boolean = false): number | undefined {
  if (wait === false) return undefined;
  return readDuration(wait === true ? WAIT_DEFAULT : wait, '--wait');
}

/** Reads the duration of an option. Pass Infinity as `max_ms` for a duration in the past. Throws Failure. */
export function readDuration(
  text: string,
  option: string,
  { min_ms = 0, max_ms = DURATION_MS_MAX }: { min_ms?: number; max_ms?: number } = {},
): number {
  const duration_ms = parseDuration(text);
  if (duration_ms === undefined) throw new Failure(`${option} is "${text}": write 30s, 10m, 2h or 1d.`, EXIT.wrong_use);
  if (duration_ms < min_ms) throw new Failure(`${option} is "${text}": write at least 1s.`, EXIT.wrong_use);
  if (duration_ms > max_ms) throw new Failure(`${option} is "${text}": write at most 365d.`, EXIT.wrong_use);
  return duration_ms;
}

import { getRounds } from 'bcryptjs';
import type { DevelopmentPort } from '../../platform/tokens/caller.ts';
import {
  type ContentProblem,
  displayNameProblem,
  isNameId,
  LONG_DISPLAY_NAME_BYTES_MAX,
  nameIdProblem,
  type ProblemAdvice,
} from '../names.ts';
import { PORT_ADVICE } from '../ports.ts';

const PORTS_MAX = 16;
/** Limit of the reference API. */
const LOBBY_COUNT_MAX = 32_767;
/** The largest number that the column can hold. */
const MAX_PLAYERS_MAX = 2_147_483_647;
/** Each step doubles the time of a login; 12 takes a quarter of a second. */
const BCRYPT_COST_MAX = 12;

/**
 * Returns what is wrong with the matchmaker's limits of a namespace. One number applies to all five kinds of client.
 */
export function matchmakerLimitProblems(limits: { lobby_count_max: number; max_players: number }): ContentProblem[] {
  const playersProblem = (problem: string) => [
    ['max-players', problem],
    ...['client', 'vpn', 'proxy', 'tor', 'hosting'].map((kind) => ['max-players', kind, problem]),
  ];
  return [
    ...(limits.lobby_count_max < 1 ? [['lobby-count', 'too-low']] : []),
    ...(limits.lobby_count_max > LOBBY_COUNT_MAX ? [['lobby-count', 'too-high']] : []),
    ...(limits.max_players < 1 ? playersProblem('too-low') : []),
    ...(limits.max_players > MAX_PLAYERS_MAX ? playersProblem('too-high') : []),
  ].map((path) => ({ path }));
}

/** What to do about problems of a namespace's limits, and of the ports of its development tokens. */
export const NAMESPACE_ADVICE: ProblemAdvice = new Map([
  ['lobby-count.too-low', `1 to ${LOBBY_COUNT_MAX}`],
  ['lobby-count.too-high', `1 to ${LOBBY_COUNT_MAX}`],
  ['max-players.too-low', `1 to ${MAX_PLAYERS_MAX}`],
  ['max-players.too-high', `1 to ${MAX_PLAYERS_MAX}`],
  ['ports-too-many', `at most ${PORTS_MAX}`],
  ...PORT_ADVICE,
  ['unsupported-port-range', 'port_range needs protocol tcp or udp'],
]);

/** Accepts domains of at least two labels, but no addresses. */
export function isDomain(text: string): boolean {
  const label = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?';
  return text.length <= 255 && new RegExp(`^(${label}\\.)+${label}$`).test(text) && !/\.[0-9]+$/.test(text);
}

/** Accepts names that Basic authentication can carry: printable, without a colon. */
export function isUserName(text: string): boolean {
  return /^[^:\p{Cc}]{1,128}$/u.test(text);
}

/**
 * A bcrypt hash: version, cost, salt of 22 characters, digest of 31. The last character of both has unused bits, which must
 * be zero; otherwise no password can be compared with it.
 */
const BCRYPT_HASH = /^\$2[ayb]\$[0-9]{2}\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{30}[.CGKOSWaeimquy26]$/;

/** Accepts complete bcrypt hashes that do not take too long to check. */
export function isPasswordHash(text: string): boolean {
  return BCRYPT_HASH.test(text) && inRange(getRounds(text), 4, BCRYPT_COST_MAX);
}

function inRange(value: number, min: number, max: number): boolean {
  return value >= min && value <= max;
}

/** Returns what is wrong with a namespace's names. The caller checks whether the name id is taken. */
export function namespaceProblems(wanted: { display_name: string; name_id: string }): ContentProblem[] {
  const display_name = displayNameProblem(wanted.display_name, LONG_DISPLAY_NAME_BYTES_MAX);
  const name_id = nameIdProblem(wanted.name_id);
  return [
    ...(display_name ? [{ path: ['display-name', display_name] }] : []),
    ...(name_id ? [{ path: ['name-id', name_id] }] : []),
  ];
}

/** Returns what is wrong with the ports of a development token. Paths give a port by its index. */
export function developmentPortProblems(ports: DevelopmentPort[]): ContentProblem[] {
  const problems = ports.flatMap((port, index) => {
    const before = ports.slice(0, index);
    return portProblems(port, before).map((problem) => ({ path: ['ports', String(index), problem] }));
  });
  return ports.length > PORTS_MAX ? [{ path: ['ports-too-many'] }, ...problems] : problems;
}

function portProblems({ label, protocol, port, port_range }: DevelopmentPort, before: DevelopmentPort[]): string[] {
  const is_range_protocol = protocol === 'tcp' || protocol === 'udp';
  const is_taken = before.some((other) => port !== undefined && other.port === port && other.protocol === protocol);
  const overlaps = before.some(
    (other) =>
      port_range &&
      other.port_range &&
      other.port_range.min <= port_range.max &&
      port_range.min <= other.port_range.max,
  );
  const checks: [boolean, string][] = [
    [!isNameId(label), 'label-invalid'],
    [port !== undefined && port_range !== undefined, 'duplicate-port-and-port-range'],
    [port === undefined && port_range === undefined, 'missing-port-and-port-range'],
    [port_range !== undefined && !is_range_protocol, 'unsupported-port-range'],
    [port_range !== undefined && port_range.min > port_range.max, 'range-min-gt-max'],
    [is_taken, 'port-protocol-not-unique'],
    [overlaps, 'ranges-overlap'],
  ];
  return checks.filter(([is_wrong]) => is_wrong).map(([, problem]) => problem);
}

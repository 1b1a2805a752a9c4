import { BlockList, isIP } from 'node:net';
import type { ContentProblem } from '../names.ts';
import { displayNameProblem, isLenientNameId, LONG_DISPLAY_NAME_BYTES_MAX } from '../names.ts';
import { cdnProblems, isHeaderName, isHeaderValue } from './cdn-rules.ts';
import {
  ACTIONS,
  type ActionConfig,
  type CaptchaConfig,
  type DockerConfig,
  type GameModeConfig,
  type MatchmakerConfig,
  type VersionConfig,
} from './config.ts';
import { portProblems } from './ports.ts';
import { resolveGameMode } from './settings.ts';
import { TIERS } from './tiers.ts';

/** What a configuration is checked against. */
export interface Surroundings {
  /** Slugs of the datacenters there are. */
  region_slugs: readonly string[];
  /** Builds of the game that can be run. */
  build_ids: ReadonlySet<string>;
  /** Whether the site that it names is the game's and complete. */
  is_site: boolean;
}

const GAME_MODES_MAX = 32;
const LABEL_MAX = 128;
const PLAYERS_MAX = 256;
const IDLE_MIN_MAX = 16;
const IDLE_MAX_MAX = 32;
const ARGUMENTS_MAX = 64;
const ARGUMENT_BYTES_MAX = 512;
const VARIABLES_MAX = 64;
const VARIABLE_NAME_BYTES_MAX = 64;
const VARIABLE_BYTES_MAX = 512;
const HEADERS_MAX = 32;
const CAPTCHA_REQUESTS_MAX = 600;
const CAPTCHA_TTL_MS_MAX = 12 * 3_600_000;

/** Names in a server's environment that are ours to set (field-behaviour 4.14), as the servers API has them. */
const RESERVED_VARIABLE = /^(SERVICE|RIVET|PORT|MUSTER)_|^BUN_BE_BUN$/;

/** Everything wrong with a version, by the rules and with the paths of field-behaviour 4.2. */
export function versionProblems(
  version: { display_name: string; config: VersionConfig },
  surroundings: Surroundings,
): ContentProblem[] {
  const name = displayNameProblem(version.display_name, LONG_DISPLAY_NAME_BYTES_MAX);
  const { matchmaker, cdn } = version.config;
  const paths = [
    ...(name ? [['display-name', name]] : []),
    ...(cdn ? below(['config', 'cdn'], cdnProblems(cdn, surroundings.is_site)) : []),
    ...(matchmaker ? below(['config', 'matchmaker'], matchmakerProblems(matchmaker, surroundings)) : []),
  ];
  return paths.map((path) => ({ path }));
}

type Path = string[];

const below = (prefix: Path, paths: Path[]): Path[] => paths.map((path) => [...prefix, ...path]);
/** As much of a label as tells which one it is: it comes once for each thing wrong below it. */
const marked = (label: string): string => `*${label.slice(0, LABEL_MAX)}*`;

function matchmakerProblems(matchmaker: MatchmakerConfig, surroundings: Surroundings): Path[] {
  const modes = Object.entries(matchmaker.game_modes ?? {});
  return [
    ...(matchmaker.captcha ? captchaProblems(matchmaker.captcha) : []),
    ...(modes.length === 0 ? [['game-modes-meta', 'too-few']] : []),
    ...(modes.length > GAME_MODES_MAX ? [['game-modes-meta', 'too-many']] : []),
    ...modes
      .slice(0, GAME_MODES_MAX)
      .flatMap(([name, mode]) =>
        below(['game-modes', marked(name)], gameModeProblems(name, mode, matchmaker, surroundings)),
      ),
  ];
}

function gameModeProblems(
  name: string,
  mode: GameModeConfig,
  matchmaker: MatchmakerConfig,
  surroundings: Surroundings,
): Path[] {
  const settings = resolveGameMode(name, mode, matchmaker, surroundings.region_slugs);
  const docker = mode.docker ?? matchmaker.docker;
  const counts: [string, number][] = [
    ['max-players-normal', settings.max_players_normal],
    ['max-players-direct', settings.max_players_direct],
    ['max-players-party', settings.max_players_party],
  ];
  return [
    ...(isLenientNameId(name) ? [] : [['name-id-invalid']]),
    ...counts.flatMap(([which, count]) => below(['player-counts', which], rangeProblems(count, 1, PLAYERS_MAX))),
    ...Object.keys(mode.regions ?? matchmaker.regions ?? {}).flatMap((slug, index) =>
      surroundings.region_slugs.includes(slug) ? [] : [['regions', String(index), 'invalid']],
    ),
    ...[...settings.regions].flatMap(([slug, region]) => below(['regions', marked(slug)], regionProblems(region))),
    ...(docker ? dockerProblems(docker, matchmaker.docker?.env, surroundings) : [['no-runtime']]),
    ...ACTIONS.flatMap((action) =>
      // The field reports the create action's under join-config too.
      below([action === 'find' ? 'find-config' : 'join-config'], actionProblems(mode.actions?.[action])),
    ),
  ];
}

function rangeProblems(value: number, min: number, max: number): Path[] {
  if (value < min) return [['too-low']];
  return value > max ? [['too-high']] : [];
}

function regionProblems({
  tier,
  idle_lobbies: { min, max },
}: {
  tier: string;
  idle_lobbies: { min: number; max: number };
}): Path[] {
  return [
    ...(TIERS.has(tier) ? [] : [['tier-name-id-invalid']]),
    ...(min > max ? [['idle-lobbies', 'min-gt-max']] : []),
    ...(min > IDLE_MIN_MAX ? [['idle-lobbies', 'min-too-high']] : []),
    ...(max > IDLE_MAX_MAX ? [['idle-lobbies', 'max-too-high']] : []),
  ];
}

/** `general_env`: the environment of all game modes, which is added to that of each. */
function dockerProblems(docker: DockerConfig, general_env: DockerConfig['env'], { build_ids }: Surroundings): Path[] {
  const has_build = docker.image_id !== undefined && build_ids.has(docker.image_id.toLowerCase());
  const args = docker.args ?? [];
  const variables = Object.entries({ ...general_env, ...docker.env });
  return [
    ...(has_build ? [] : [['no-build']]),
    ...(args.length > ARGUMENTS_MAX ? [['args-too-many']] : []),
    ...args
      .slice(0, ARGUMENTS_MAX)
      .flatMap((argument, index) =>
        below(['args', String(index)], argumentProblems(argument, args.indexOf(argument) < index)),
      ),
    ...(variables.length > VARIABLES_MAX ? [['env-vars-too-many']] : []),
    ...variables
      .slice(0, VARIABLES_MAX)
      .flatMap(([key, value]) => below(['env-vars', marked(key)], variableProblems(key, value))),
    ...portProblems(docker.ports ?? {}, docker.network_mode ?? 'bridge', marked),
  ];
}

function argumentProblems(argument: string, is_repeated: boolean): Path[] {
  if (argument === '' || argument.includes('\0')) return [['invalid']];
  if (Buffer.byteLength(argument) > ARGUMENT_BYTES_MAX) return [['too-long']];
  return is_repeated ? [['not-unique']] : [];
}

function variableProblems(key: string, value: string): Path[] {
  return [
    ...(/^[A-Za-z_][A-Za-z0-9_]*$/.test(key) ? [] : [['key', 'invalid']]),
    ...(Buffer.byteLength(key) > VARIABLE_NAME_BYTES_MAX ? [['key', 'too-long']] : []),
    ...(RESERVED_VARIABLE.test(key) ? [['key', 'conflicts-with-default']] : []),
    ...(value === '' || value.includes('\0') ? [['value', 'invalid']] : []),
    ...(Buffer.byteLength(value) > VARIABLE_BYTES_MAX ? [['value', 'too-long']] : []),
  ];
}

function actionProblems(action: ActionConfig | undefined): Path[] {
  const verification = action?.verification_config ?? action?.verification;
  if (!verification) return [];
  const headers = Object.entries(verification.headers ?? {});
  const paths = [
    ...below(['url'], urlProblems(verification.url)),
    ...(headers.length > HEADERS_MAX ? [['headers-meta', 'too-many']] : []),
    ...headers
      .slice(0, HEADERS_MAX)
      .flatMap(([name, value]) => below(['headers', marked(name)], headerProblems(name, value))),
  ];
  return below(['verification-config'], paths);
}

/** What can be said without asking the network; the address is checked again, resolved, when a request is sent to it. */
function urlProblems(text: string): Path[] {
  if (!URL.canParse(text)) return [['invalid']];
  const { protocol, hostname } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:') return [['invalid-scheme']];
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  if (host === '') return [['no-host']];
  const family = isIP(host);
  const is_ours =
    family === 0 ? /(^|\.)(localhost|local)$/.test(host) : isPrivate(host, family === 4 ? 'ipv4' : 'ipv6');
  return is_ours ? [['invalid-ip']] : [];
}

function isPrivate(address: string, family: 'ipv4' | 'ipv6'): boolean {
  return PRIVATE[family].check(address, family);
}

/**
 * Addresses that are not on the Internet (IANA's special-purpose registries). In a list of each kind: in one, all of IPv4
 * would be found in the IPv6 network that stands for it.
 */
const PRIVATE = { ipv4: new BlockList(), ipv6: new BlockList() };
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const) {
  PRIVATE.ipv4.addSubnet(network, bits, 'ipv4');
}
for (const [network, bits] of [
  ['::', 96],
  ['::ffff:0:0', 96],
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  PRIVATE.ipv6.addSubnet(network, bits, 'ipv6');
}

function headerProblems(name: string, value: string): Path[] {
  return [...(isHeaderName(name) ? [] : [['invalid-name']]), ...(isHeaderValue(value) ? [] : [['invalid-value']])];
}

function captchaProblems(captcha: CaptchaConfig): Path[] {
  const { hcaptcha, turnstile } = captcha;
  const keys = (provider: Record<string, unknown>, name: string, limits: Record<string, number>): Path[] =>
    Object.entries(limits).flatMap(([key, bytes_max]) => {
      const value = provider[key];
      const place = [name, key.replace('_', '-')];
      if (typeof value !== 'string') return [[...place, 'required']];
      if (value === '') return [[...place, 'too-short']];
      return Buffer.byteLength(value) > bytes_max ? [[...place, 'too-long']] : [];
    });
  const paths = [
    ...(captcha.requests_before_reverify > CAPTCHA_REQUESTS_MAX ? [['requests-before-reverify', 'too-high']] : []),
    ...(captcha.verification_ttl > CAPTCHA_TTL_MS_MAX ? [['verification-ttl', 'too-high']] : []),
    ...(hcaptcha ? keys(hcaptcha, 'hcaptcha', { site_key: 36, secret_key: 42 }) : []),
    ...(turnstile ? keys(turnstile, 'turnstile', { site_key: 30, secret_key: 40 }) : []),
  ];
  return [...below(['captcha'], paths), ...(hcaptcha || turnstile ? [] : [['captcha-meta', 'must-have-one']])];
}

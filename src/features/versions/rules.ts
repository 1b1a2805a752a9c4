import { isToken } from '../../platform/http/token.ts';
import type { AllowList } from '../../platform/outbound/addresses.ts';
import { isOwnHeader, targetProblem } from '../../platform/outbound/target.ts';
import type { ContentProblem } from '../names.ts';
import { displayNameProblem, isLenientNameId, LONG_DISPLAY_NAME_BYTES_MAX } from '../names.ts';
import { captchaProblems } from './captcha-rules.ts';
import { cdnProblems, isHeaderValue } from './cdn-rules.ts';
import {
  ACTIONS,
  type ActionConfig,
  type DockerConfig,
  type GameModeConfig,
  type MatchmakerConfig,
  type VersionConfig,
} from './config.ts';
import { portProblems } from './port-rules.ts';
import { below, type ProblemPath, toPathPart } from './problem-paths.ts';
import { resolveGameMode, verificationOf } from './settings.ts';
import { TIERS } from './tiers.ts';

/** The facts that the rules need besides the configuration. */
export interface VersionContext {
  /** Slugs of all datacenters. */
  region_slugs: readonly string[];
  /** Complete builds of the game. */
  build_ids: ReadonlySet<string>;
  /** Whether the named site is complete and belongs to the game. */
  is_site: boolean;
  /** Captcha providers for which the service has its own keys, so that versions need none. */
  shared_captchas: readonly string[];
  /** Targets that the operator allows although they are not on the Internet. */
  allowed_targets: AllowList;
}

const PROBLEMS_MAX = 256;
export const GAME_MODES_MAX = 32;
export const PLAYERS_MAX = 256;
export const IDLE_MIN_MAX = 16;
export const IDLE_MAX_MAX = 32;
export const ARGUMENTS_MAX = 64;
export const ARGUMENT_BYTES_MAX = 512;
export const VARIABLES_MAX = 64;
export const VARIABLE_NAME_BYTES_MAX = 64;
export const VARIABLE_BYTES_MAX = 512;
export const HEADERS_MAX = 32;
export const SECRET_BYTES_MIN = 24;
export const SECRET_BYTES_MAX = 64;

/** Environment variables that only the service sets, as in the servers API. */
const RESERVED_VARIABLE = /^(SERVICE|RIVET|PORT|MUSTER)_|^BUN_BE_BUN$/;

/** Returns what is wrong with a version, at most 256 problems. Clients of the reference API know the paths. */
export function versionProblems(
  version: { display_name: string; config: VersionConfig },
  context: VersionContext,
): ContentProblem[] {
  const name = displayNameProblem(version.display_name, LONG_DISPLAY_NAME_BYTES_MAX);
  const { matchmaker, cdn } = version.config;
  const paths = [
    ...(name ? [['display-name', name]] : []),
    ...(cdn ? below(['config', 'cdn'], cdnProblems(cdn, context.is_site)) : []),
    ...(matchmaker ? below(['config', 'matchmaker'], matchmakerProblems(matchmaker, context)) : []),
  ];
  return paths.slice(0, PROBLEMS_MAX).map((path) => ({ path }));
}

function matchmakerProblems(matchmaker: MatchmakerConfig, context: VersionContext): ProblemPath[] {
  const modes = Object.entries(matchmaker.game_modes ?? {});
  return [
    ...(matchmaker.captcha ? captchaProblems(matchmaker.captcha, context.shared_captchas) : []),
    ...(modes.length === 0 ? [['game-modes-meta', 'too-few']] : []),
    ...(modes.length > GAME_MODES_MAX ? [['game-modes-meta', 'too-many']] : []),
    ...modes
      .slice(0, GAME_MODES_MAX)
      .flatMap(([name, mode]) =>
        below(['game-modes', toPathPart(name)], gameModeProblems(name, mode, matchmaker, context)),
      ),
  ];
}

function gameModeProblems(
  name: string,
  mode: GameModeConfig,
  matchmaker: MatchmakerConfig,
  context: VersionContext,
): ProblemPath[] {
  const settings = resolveGameMode(name, mode, matchmaker, context.region_slugs);
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
      context.region_slugs.includes(slug) ? [] : [['regions', String(index), 'invalid']],
    ),
    ...[...settings.regions].flatMap(([slug, region]) => below(['regions', toPathPart(slug)], regionProblems(region))),
    ...(docker ? dockerProblems(docker, matchmaker.docker?.env, context) : [['no-runtime']]),
    ...ACTIONS.flatMap((action) =>
      // The reference API reports the create action's problems under join-config too.
      below([action === 'find' ? 'find-config' : 'join-config'], actionProblems(mode.actions?.[action], context)),
    ),
  ];
}

function rangeProblems(value: number, min: number, max: number): ProblemPath[] {
  if (value < min) return [['too-low']];
  return value > max ? [['too-high']] : [];
}

function regionProblems({
  tier,
  idle_lobbies: { min, max },
}: {
  tier: string;
  idle_lobbies: { min: number; max: number };
}): ProblemPath[] {
  return [
    ...(TIERS.has(tier) ? [] : [['tier-name-id-invalid']]),
    ...(min > max ? [['idle-lobbies', 'min-gt-max']] : []),
    ...(min > IDLE_MIN_MAX ? [['idle-lobbies', 'min-too-high']] : []),
    ...(max > IDLE_MAX_MAX ? [['idle-lobbies', 'max-too-high']] : []),
  ];
}

/** `general_env`: the environment of all game modes, merged into that of each. */
function dockerProblems(
  docker: DockerConfig,
  general_env: DockerConfig['env'],
  { build_ids }: VersionContext,
): ProblemPath[] {
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
      .flatMap(([key, value]) => below(['env-vars', toPathPart(key)], variableProblems(key, value))),
    ...portProblems(docker.ports ?? {}, docker.network_mode ?? 'bridge'),
  ];
}

function argumentProblems(argument: string, is_repeated: boolean): ProblemPath[] {
  if (argument === '' || argument.includes('\0')) return [['invalid']];
  if (Buffer.byteLength(argument) > ARGUMENT_BYTES_MAX) return [['too-long']];
  return is_repeated ? [['not-unique']] : [];
}

function variableProblems(key: string, value: string): ProblemPath[] {
  return [
    ...(/^[A-Za-z_][A-Za-z0-9_]*$/.test(key) ? [] : [['key', 'invalid']]),
    ...(Buffer.byteLength(key) > VARIABLE_NAME_BYTES_MAX ? [['key', 'too-long']] : []),
    ...(RESERVED_VARIABLE.test(key) ? [['key', 'conflicts-with-default']] : []),
    ...(value === '' || value.includes('\0') ? [['value', 'invalid']] : []),
    ...(Buffer.byteLength(value) > VARIABLE_BYTES_MAX ? [['value', 'too-long']] : []),
  ];
}

function actionProblems(action: ActionConfig | undefined, { allowed_targets }: VersionContext): ProblemPath[] {
  const verification = verificationOf(action);
  if (!verification) return [];
  // The resolved address is checked again when a request is sent.
  const url_problem = targetProblem(verification.url, allowed_targets);
  const headers = Object.entries(verification.headers ?? {});
  const paths = [
    ...(url_problem ? [['url', url_problem]] : []),
    ...(isSecret(verification.secret) ? [] : [['secret', 'invalid']]),
    ...(headers.length > HEADERS_MAX ? [['headers-meta', 'too-many']] : []),
    ...headers
      .slice(0, HEADERS_MAX)
      .flatMap(([name, value]) => below(['headers', toPathPart(name)], headerProblems(name, value))),
  ];
  return below(['verification-config'], paths);
}

function headerProblems(name: string, value: string): ProblemPath[] {
  const is_name = isToken(name) && !isOwnHeader(name);
  return [...(is_name ? [] : [['invalid-name']]), ...(isHeaderValue(value) ? [] : [['invalid-value']])];
}

/** Accepts secrets of Standard Webhooks 1.0.0. */
function isSecret(text: string | undefined): boolean {
  if (text === undefined) return true;
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const { length } = Buffer.from(base64, 'base64');
  return length >= SECRET_BYTES_MIN && length <= SECRET_BYTES_MAX;
}

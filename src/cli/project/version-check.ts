import { Failure } from '../../terminal/failure.ts';
import { ApiCaller } from '../api-caller.ts';
import { createPublicToken, findSeat } from '../find.ts';
import { paths } from '../paths.ts';
import { pause } from '../pause.ts';
import type { Scope, Session } from '../session.ts';
import { endLobby } from './lobby-end.ts';
import { switchTo } from './versions.ts';

/** The namespace in which a version is checked before it goes live in another. */
const CHECK_NAMESPACE = 'deploy-check';
const LOG_LINES = 40;
const ATTEMPTS_MAX = 10;
/** The longest random pause after another deploy disturbed an attempt. It doubles with each attempt. */
const PAUSE_MAX_MS = { first: 1_000, last: 16_000 };
/** Errors of a find in a game mode that needs more than a token, or takes no finds. They say nothing about the server. */
const NOT_CHECKED = /^(CAPTCHA_|VERIFICATION_|MATCHMAKER_(VERIFICATION_|FIND_DISABLED|IDENTITY_REQUIRED))/;
/** The find's lobby did not become ready within the time limit of a request. */
const NOT_READY = 'MATCHMAKER_LOBBY_NOT_READY';
/** The find's lobby ended before it was ready. */
const STOPPED = 'MATCHMAKER_LOBBY_STOPPED';
/** The pause before a find is repeated: an address has 16 finds a minute by default. */
const FIND_AGAIN_AFTER_MS = 4_000;

interface CheckOptions {
  version_id: string;
  /** How long a lobby that is kept without players may take. One without idle lobbies has the time of one find. */
  ready_within_ms?: number;
}

/**
 * Checks a version: one lobby of it must become ready. Returns a sentence about it. Throws a Failure with the last lines of
 * the server's log if it does not. Leaves nothing of the version running, also if the session is stopped.
 */
export async function checkVersion(
  session: Session,
  scope: Scope,
  { version_id, ready_within_ms = 0 }: CheckOptions,
): Promise<string> {
  const namespace = await ensureCheckNamespace(session, scope);
  const check = { scope: { ...scope, namespace }, deployed_to: scope.namespace.name_id, version_id, ready_within_ms };
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const outcome = await checkOnce(session, check);
    if (outcome.is === 'failed') throw outcome.failure;
    if (outcome.is !== 'disturbed') return outcome.words;
    const pause_max_ms = Math.min(PAUSE_MAX_MS.last, PAUSE_MAX_MS.first * 2 ** (attempt - 1));
    await pause(Math.random() * pause_max_ms, session.api.stopping);
  }
  throw new Failure('Other deploys of this game go on at the same time, so this one could not be checked. Try again.');
}

interface Check extends Required<CheckOptions> {
  /** The check namespace, with its game. */
  scope: Scope;
  /** The name of the namespace that gets the version. */
  deployed_to: string;
}

/** Puts the check namespace on a version while a lobby of it is checked. */
async function checkOnce(session: Session, check: Check): Promise<Outcome | { is: 'disturbed' }> {
  const { scope: check_scope, version_id } = check;
  try {
    await switchTo(session, check_scope, version_id);
    const outcome = await checkLobby(session, check);
    // Another deploy may have put its version there meanwhile, so that the lobby was of that version.
    return (await endCheck(session, check_scope, version_id)) ? outcome : { is: 'disturbed' };
  } catch (error) {
    await endCheck(session.withoutStop(), check_scope, version_id).catch((cause: Error) =>
      session.output.say(`The namespace ${CHECK_NAMESPACE} may still have lobbies of the version: ${cause.message}`),
    );
    throw error;
  }
}

/**
 * Takes a version out of the check namespace, which would otherwise keep idle lobbies of it warm, and ends its lobbies.
 * Returns whether the namespace was on the version until now.
 */
async function endCheck(session: Session, check_scope: Scope, version_id: string): Promise<boolean> {
  const was_on = await isOn(session, check_scope, version_id);
  if (was_on) await switchTo(session, check_scope, emptyVersionOf(check_scope.game));
  const { rows } = await session.api.get<{ rows: { lobby_id: string }[] }>(paths.lobbyRows(check_scope), {
    query: { version_id },
  });
  await Promise.all(rows.map(({ lobby_id }) => endLobby(session, check_scope, lobby_id)));
  return was_on;
}

async function isOn({ api }: Session, scope: Scope, version_id: string): Promise<boolean> {
  const { namespace } = await api.get<{ namespace: { version_id: string } }>(paths.namespace(scope));
  return namespace.version_id === version_id;
}

/** Returns the version that a game has from its beginning, which has no game mode. */
function emptyVersionOf({ versions }: Scope['game']): string {
  const [first] = versions.toSorted((one, other) => one.create_ts.localeCompare(other.create_ts));
  if (!first) throw new Failure('The game has no version.');
  return first.version_id;
}

type Outcome = { is: 'ready' | 'not_checked'; words: string } | { is: 'failed'; failure: Failure };

/** Finds a seat in a lobby of the namespace's version, in the first game mode that needs no more than a token. */
async function checkLobby(session: Session, check: Check): Promise<Outcome> {
  const { scope } = check;
  const token = await createPublicToken(session, scope);
  const player = new ApiCaller(session.api.url, token, { stopping: session.api.stopping });
  const { game_modes = [] } = await player.get<{ game_modes?: { game_mode_id: string }[] }>('/matchmaker/lobbies/list');
  let outcome: Outcome = { is: 'not_checked', words: 'check    not possible, because the version has no game mode' };
  for (const { game_mode_id } of game_modes) {
    outcome = await checkGameMode(session, { ...check, player, game_mode_id });
    if (outcome.is !== 'not_checked') break;
  }
  return outcome;
}

interface GameModeCheck extends Check {
  player: ApiCaller;
  game_mode_id: string;
}

async function checkGameMode(session: Session, check: GameModeCheck): Promise<Outcome> {
  const started = performance.now();
  try {
    await findReady(session, check);
    const seconds = ((performance.now() - started) / 1_000).toFixed(1);
    return { is: 'ready', words: `check    a lobby of the version was ready after ${seconds} s, and ended again` };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return await explainFailure(session, check, error);
  }
}

/** Finds a seat. Goes on after the time of one find if the version has idle lobbies, which start without players. */
async function findReady(session: Session, check: GameModeCheck): Promise<void> {
  const { player, game_mode_id, ready_within_ms } = check;
  const deadline = performance.now() + ready_within_ms;
  for (let is_first = true; ; is_first = false) {
    try {
      await findSeat(player, {
        body: { game_modes: [game_mode_id] },
        ...(player.stopping && { signal: player.stopping }),
      });
      return;
    } catch (error) {
      const may_follow = error instanceof Failure && error.refusal?.code === NOT_READY && performance.now() < deadline;
      if (!may_follow || !(await hasIdleLobbies(session, check))) throw error;
      if (is_first) session.output.say(`check    no lobby of the version is ready yet: ${error.message}`);
    }
    await pause(FIND_AGAIN_AFTER_MS, player.stopping);
  }
}

/** A part of a configuration that may name idle lobbies. */
interface WithIdleLobbies {
  idle_lobbies?: { min: number };
  regions?: Record<string, WithIdleLobbies>;
}

/** Returns whether a game mode of a version has idle lobbies in a region. */
async function hasIdleLobbies({ api }: Session, { scope, version_id, game_mode_id }: GameModeCheck): Promise<boolean> {
  type Matchmaker = WithIdleLobbies & { game_modes?: Record<string, WithIdleLobbies> };
  const { version } = await api.get<{ version: { config: { matchmaker?: Matchmaker } } }>(
    `/cloud/games/${scope.game.game_id}/versions/${version_id}`,
  );
  const { matchmaker } = version.config;
  const parts = [matchmaker, matchmaker?.game_modes?.[game_mode_id]].filter((part) => part !== undefined);
  const in_regions = parts.flatMap(({ regions = {} }) => Object.values(regions));
  return [...parts, ...in_regions].some(({ idle_lobbies }) => (idle_lobbies?.min ?? 0) > 0);
}

async function explainFailure(
  session: Session,
  { scope, deployed_to, version_id }: GameModeCheck,
  { message, exit_code, refusal }: Failure,
): Promise<Outcome> {
  const code = refusal?.code ?? '';
  if (NOT_CHECKED.test(code)) {
    return { is: 'not_checked', words: `check    not possible, because a find needs more than a token (${code})` };
  }
  const unchecked = session.commandFor(scope.game, `deploy ${deployed_to} --version ${version_id} --no-check`);
  if (code !== NOT_READY && code !== STOPPED) {
    const words = `The new version could not be checked, so nothing was switched: ${message}`;
    const failure = new Failure(`${words} To switch without a check: ${unchecked}`, exit_code, refusal);
    return { is: 'failed', failure };
  }
  const what = `A lobby of the new version did not become ready, so nothing was switched (${message})`;
  const advice = code === NOT_READY ? `\nIf its server only needs longer: ${unchecked}` : '';
  const failure = new Failure(`${what}. Its log:\n${await lastLines(session, scope)}${advice}`);
  return { is: 'failed', failure };
}

/** Returns the namespace in which versions are checked, and creates it if the game has none. */
async function ensureCheckNamespace(session: Session, { game }: Scope): Promise<Scope['namespace']> {
  const known = game.namespaces.find(({ name_id }) => name_id === CHECK_NAMESPACE);
  if (known) return known;
  const version_id = emptyVersionOf(game);
  const body = { name_id: CHECK_NAMESPACE, display_name: 'Checks of deploys', version_id };
  const path = `/cloud/games/${game.game_id}/namespaces`;
  try {
    const { namespace_id } = await session.api.call<{ namespace_id: string }>('POST', path, { body });
    return { namespace_id, name_id: CHECK_NAMESPACE, display_name: body.display_name, version_id, create_ts: '' };
  } catch (error) {
    // Another deploy may have created it since the game was read.
    const { namespaces } = await session.game();
    const created = namespaces.find(({ name_id }) => name_id === CHECK_NAMESPACE);
    if (created) return created;
    throw error;
  }
}

async function lastLines(session: Session, scope: Scope): Promise<string> {
  const query = { include_destroyed: 'true' };
  const { servers } = await session.api.get<{ servers: { id: string }[] }>(paths.servers(scope), { query });
  const [newest] = servers;
  if (!newest) return '(no server was started)';
  const all: { ts: string; text: string }[] = [];
  for (const stream of ['std_out', 'std_err']) {
    const path = `${paths.servers(scope)}/${newest.id}/log-lines`;
    all.push(...(await session.api.get<{ lines: { ts: string; text: string }[] }>(path, { query: { stream } })).lines);
  }
  const last = all.toSorted((one, other) => one.ts.localeCompare(other.ts)).slice(-LOG_LINES);
  return last.map(({ text }) => `  ${text}`).join('\n');
}

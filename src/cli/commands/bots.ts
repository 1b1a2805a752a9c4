import { type MatchmakerPorts, readSocketLabels } from '../../shared/ports.ts';
import { EXIT, Failure, isFinal } from '../../terminal/failure.ts';
import { showWhile } from '../../terminal/progress-line.ts';
import { doStoppable } from '../../terminal/stop-signals.ts';
import { counted } from '../../terminal/terminal.ts';
import { ApiCaller } from '../api-caller.ts';
import { LobbyChecks, type SeenLobby } from '../bots/lobby-checks.ts';
import { connectTo, type Seat } from '../bots/seat.ts';
import { countFault, countRefusal, createTally, percentile, type Tally } from '../bots/tally.ts';
import { readDuration } from '../durations.ts';
import { createPublicToken, findSeat } from '../find.ts';
import { paths } from '../paths.ts';
import { pause } from '../pause.ts';
import { type Scope, Session, type SharedOptions } from '../session.ts';

interface BotsOptions extends SharedOptions {
  for: string;
  mode?: string;
}

const BOTS_MAX = 1_000;
const STAY_MS = { min: 1_000, max: 8_000 };
const PAUSE_AFTER_REFUSAL_MS = 1_000;
const CHECK_EVERY_MS = 1_000;
/** What raises a limit of one address, by the error of a find over that limit. */
const ADVICE: Record<string, string> = {
  API_RATE_LIMIT: 'start the service with MUSTER_LIMITS_SCALE=100, as "muster dev" does',
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE:
    "raise the namespace's max_players_per_client, in the settings of the hub (muster open)",
};
/** Errors of requests that did not get to the matchmaker, which keeps a receipt of all others. */
const WITHOUT_RECEIPT = /^(API_|HTTP_|no answer)/;

/** Lets bots play. A signal such as ctrl-C ends them before their time, and their figures are shown. */
export async function bots(wanted: string, options: BotsOptions): Promise<void> {
  await doStoppable({
    work: (stopping) => playBots(wanted, { options, stopping, onEnd: showFigures }),
    describeStop: () => 'Stopped.',
  });
}

interface BotsRun {
  options: BotsOptions;
  stopping: AbortSignal;
  /** Called with the figures when the bots have played, also if something failed. */
  onEnd: (session: Session, figures: BotFigures) => void;
}

/**
 * Lets bots play in a namespace for a time, or until a stop: each finds a seat, opens a WebSocket to its game server, stays,
 * leaves, and begins again. Passes their figures to `onEnd`. Throws if something happened that must not happen to any player,
 * if the limits of one address refused bots, or if they were stopped.
 */
export async function playBots(wanted: string, { options, stopping, onEnd }: BotsRun): Promise<void> {
  const count = Number(wanted);
  if (!Number.isInteger(count) || count < 1 || count > BOTS_MAX) {
    throw new Failure(`"${wanted}" is not a number of bots: write 1 to ${BOTS_MAX}.`, EXIT.wrong_use);
  }
  const duration_ms = readDuration(options.for, '--for');
  const session = await Session.open(options, stopping);
  const scope = await session.scope();
  const { game, namespace } = scope;
  const player = new ApiCaller(session.api.url, await createPublicToken(session, scope), stopping);
  const mode = options.mode ?? (await firstMode(session, scope, player));

  const tally = createTally();
  const checks = new LobbyChecks();
  const ending = AbortSignal.any([AbortSignal.timeout(duration_ms), stopping]);
  session.output.say(
    `${counted(count, 'bot plays', 'bots play')} "${mode}" in ${game.name_id} ${namespace.name_id} for ${options.for}.`,
  );
  const socket_labels = readSocketLabels(await readMatchmaker(session, scope), mode);
  const playing = Array.from({ length: count }, () => play({ player, mode, socket_labels, tally, checks, ending }));
  const checking = checkLobbies(session, { scope, tally, checks, ending });
  try {
    await showWhile(
      () =>
        `${tally.find_ms.length} seats, ${tally.connected} connected, ${counted(tally.faults.size, 'kind', 'kinds')} of faults`,
      () => Promise.all([...playing, checking]),
    );
  } finally {
    onEnd(session, figuresOf(tally));
  }
  stopping.throwIfAborted();
  judge(tally);
}

/** Throws a Failure that names the faults, or what to do about limits that refused bots. */
function judge({ faults, refused }: Tally): void {
  if (faults.size > 0) throw new Failure(`Faults: ${[...faults.keys()].join(', ')}.`);
  const limits = Object.keys(ADVICE).filter((code) => refused.has(code));
  if (limits.length > 0) {
    const advice = limits.map((code) => ADVICE[code]).join('; ');
    throw new Failure(
      `All bots come from one address, and its limits refused some of them. Players at different addresses do not share these limits. For more bots: ${advice}.`,
    );
  }
}

async function firstMode(session: Session, { game, namespace }: Scope, player: ApiCaller): Promise<string> {
  const { game_modes } = await player.get<{ game_modes: { game_mode_id: string }[] }>('/matchmaker/lobbies/list');
  const [first] = game_modes;
  if (first) return first.game_mode_id;
  const advice = `Deploy one: ${session.commandFor(game, `deploy ${namespace.name_id}`)}`;
  throw new Failure(`The live version has no game mode. ${advice}`, EXIT.not_found);
}

/** Returns the ports of the game modes of the live version. */
async function readMatchmaker(session: Session, { game, namespace }: Scope): Promise<MatchmakerPorts | undefined> {
  const path = `/cloud/games/${game.game_id}/versions/${namespace.version_id}`;
  const { version } = await session.api.get<{ version: { config: { matchmaker?: MatchmakerPorts } } }>(path);
  return version.config.matchmaker;
}

interface Play {
  player: ApiCaller;
  mode: string;
  /** Labels of the ports that take a WebSocket. */
  socket_labels: readonly string[];
  tally: Tally;
  checks: LobbyChecks;
  ending: AbortSignal;
}

/** Plays as one bot until the end. */
async function play({ player, mode, socket_labels, tally, checks, ending }: Play): Promise<void> {
  while (!ending.aborted) {
    const seat = await find({ player, mode, tally, checks, ending });
    if (!seat) {
      await pause(PAUSE_AFTER_REFUSAL_MS, ending);
      continue;
    }
    try {
      const connection = await connectTo(seat, { socket_labels, signal: ending });
      if (connection) tally.connected += 1;
      else tally.without_port += 1;
      const stay_ms = STAY_MS.min + Math.random() * (STAY_MS.max - STAY_MS.min);
      await Promise.race([pause(stay_ms, ending), connection?.closed ?? pause(stay_ms, ending)]);
      connection?.close();
    } catch (error) {
      if (!ending.aborted)
        countFault(tally, `a seat without a connection (${error instanceof Error ? error.message : error})`);
    }
  }
}

/** Returns a seat; undefined if the find was refused. */
async function find({ player, mode, tally, checks, ending }: Omit<Play, 'socket_labels'>): Promise<Seat | undefined> {
  const started = performance.now();
  try {
    const seat = await findSeat<Seat>(player, { body: { game_modes: [mode] }, signal: ending });
    tally.find_ms.push(performance.now() - started);
    const given = { lobby_id: seat.lobby.lobby_id, token: seat.player.token, mode, began_at: started };
    for (const fault of checks.addSeat(given)) countFault(tally, fault);
    return seat;
  } catch (error) {
    if (ending.aborted) return undefined;
    if (!(error instanceof Failure)) throw error;
    const { code = 'no answer', ray_id } = error.refusal ?? {};
    countRefusal(tally, code, ray_id);
    if (/^(no answer|ERROR|HTTP_5\d\d)$/.test(code)) countFault(tally, `a find without an answer (${error.message})`);
    return undefined;
  }
}

/** Checks the lobbies again and again until the end, and counts what is wrong with them. A stop ends its request. */
async function checkLobbies(
  session: Session,
  { scope, tally, checks, ending }: { scope: Scope } & Pick<Play, 'tally' | 'checks' | 'ending'>,
): Promise<void> {
  while (!ending.aborted) {
    const lobbies = await readLobbies(session, scope);
    if (lobbies) for (const fault of checks.addLobbies(lobbies, performance.now())) countFault(tally, fault);
    await pause(CHECK_EVERY_MS, ending);
  }
}

/** Returns the running lobbies; undefined if a stop came before the answer, or a failure that may pass instead of it. */
async function readLobbies({ api }: Session, scope: Scope): Promise<SeenLobby[] | undefined> {
  try {
    return (await api.get<{ lobbies: SeenLobby[] }>(paths.runningLobbies(scope))).lobbies;
  } catch (error) {
    if (api.stopping?.aborted || (error instanceof Failure && !isFinal(error))) return undefined;
    throw error;
  }
}

function figuresOf(tally: Tally) {
  const { find_ms, connected, without_port } = tally;
  const [p50, p95] = [0.5, 0.95].map((share) => percentile(find_ms, share)).map((ms) => ms && Math.round(ms));
  const refusals = [...tally.refused].map(([code, one]) => ({ code, ...one }));
  const faults = [...tally.faults].map(([what, count]) => ({ what, count }));
  const seats = find_ms.length;
  return { seats, find_p50_ms: p50, find_p95_ms: p95, connected, without_port, refusals, faults };
}

type BotFigures = ReturnType<typeof figuresOf>;

/** Writes the figures of bots: as one object with `--json`, to which an event of other output adds its name. */
export function showFigures(session: Session, figures: BotFigures, event?: { event: string }): void {
  const { seats, find_p50_ms: p50, find_p95_ms: p95, connected, without_port, refusals, faults } = figures;
  session.show({ ...event, ...figures }, (output) => {
    const times = p50 === undefined ? '' : `, found in ${p50} ms (p50), ${p95} ms (p95)`;
    output.line(`seats      ${seats}${times}`);
    output.line(
      `connected  ${connected}${without_port > 0 ? `; ${counted(without_port, 'seat has', 'seats have')} no port for WebSockets` : ''}`,
    );
    for (const { code, count, ray_id } of refusals) {
      const advice = ray_id === undefined || WITHOUT_RECEIPT.test(code) ? '' : `: muster why ${ray_id}`;
      output.line(`refused    ${count} × ${code}${advice}`);
    }
    for (const { what, count } of faults) output.line(`fault      ${count} × ${what}`);
  });
}

import { type MatchmakerPorts, readSocketLabels } from '../../shared/ports.ts';
import { EXIT, Failure, isFinal } from '../../terminal/failure.ts';
import { showWhile } from '../../terminal/progress-line.ts';
import { doStoppable } from '../../terminal/stop-signals.ts';
import { counted } from '../../terminal/terminal.ts';
import { ApiCaller } from '../api-caller.ts';
import { LobbyChecks, type SeenLobby } from '../bots/lobby-checks.ts';
import { connectTo, type Seat } from '../bots/seat.ts';
import { countFault, countFaults, countRefusal, createTally, percentile, type Tally } from '../bots/tally.ts';
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
/** What raises a limit of one address, by the error of a find over that limit. `open` is the command that opens the hub. */
const ADVICE: Record<string, (open: string) => string> = {
  API_RATE_LIMIT: () => 'start the service with MUSTER_LIMITS_SCALE=100, as "muster dev" does',
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: (open) =>
    `raise the namespace's max_players_per_client, in the settings of the hub (${open})`,
};
/** Errors of requests that did not get to the matchmaker, which keeps a receipt of all others. */
const WITHOUT_RECEIPT = /^(API_|HTTP_|no answer)/;

/** Lets bots play. A signal such as ctrl-C ends them before their time, and their figures are shown. */
export async function bots(wanted: string, options: BotsOptions): Promise<void> {
  const count = Number(wanted);
  if (!Number.isInteger(count) || count < 1 || count > BOTS_MAX) {
    throw new Failure(`"${wanted}" is not a number of bots: write 1 to ${BOTS_MAX}.`, EXIT.wrong_use);
  }
  await doStoppable({
    work: async (stopping) => {
      const session = await Session.open(options, { stopping });
      await playBots({ session, count, duration: options.for, mode: options.mode, stopping, onEnd: showFigures });
    },
    describeStop: () => 'Stopped.',
  });
}

interface BotsRun {
  session: Session;
  count: number;
  /** For example `30s`. */
  duration: string;
  /** The name of the game mode; by default the first. */
  mode?: string | undefined;
  stopping: AbortSignal;
  /** Called with the figures when the bots have played, also if something failed. */
  onEnd: (session: Session, scope: Scope, figures: BotFigures) => void;
}

/**
 * Lets bots play in a namespace for a time, or until a stop: each finds a seat, opens a WebSocket to its game server, stays,
 * leaves, and begins again. Passes their figures to `onEnd`. Throws if something happened that must not happen to any player,
 * if the limits of one address refused bots, if no bot got a seat, or if they were stopped.
 */
export async function playBots({ session, count, duration, mode: wanted, stopping, onEnd }: BotsRun): Promise<void> {
  const duration_ms = readDuration(duration, '--for', { min_ms: 1_000 });
  const scope = await session.scope();
  const { game, namespace } = scope;
  const player = new ApiCaller(session.api.url, await createPublicToken(session, scope), { stopping });
  const mode = await chooseMode(session, { scope, player, wanted });

  const tally = createTally();
  const checks = new LobbyChecks();
  const ending = AbortSignal.any([AbortSignal.timeout(duration_ms), stopping]);
  session.output.say(
    `${counted(count, 'bot plays', 'bots play')} "${mode}" in ${game.name_id} ${namespace.name_id} for ${duration}.`,
  );
  const socket_labels = readSocketLabels(await readMatchmaker(session, scope), mode);
  const playing = Array.from({ length: count }, () => play({ player, mode, socket_labels, tally, checks, ending }));
  const checking = checkLobbies(session, { scope, tally, checks, ending });
  try {
    await showWhile(
      () =>
        `${counted(tally.find_ms.length, 'seat', 'seats')}, ${tally.connected} connected, ${counted(countFaults(tally), 'fault', 'faults')}`,
      () => Promise.all([...playing, checking]),
    );
  } finally {
    onEnd(session, scope, figuresOf(tally));
  }
  stopping.throwIfAborted();
  judge(tally, session.commandIn(scope, 'open'));
}

/** Throws a Failure that names the faults, says what to do about limits that refused bots, or that no bot got a seat. */
function judge({ faults, refused, find_ms }: Tally, open: string): void {
  if (faults.size > 0) throw new Failure(`Faults: ${[...faults.keys()].join(', ')}.`);
  const limits = Object.keys(ADVICE).filter((code) => refused.has(code));
  if (limits.length > 0) {
    const advice = limits.map((code) => ADVICE[code]?.(open)).join('; ');
    throw new Failure(
      `All bots come from one address, and its limits refused some of them. Players at different addresses do not share these limits. For more bots: ${advice}.`,
    );
  }
  if (find_ms.length > 0) return;
  const codes = [...refused.keys()].join(', ');
  throw new Failure(
    refused.size > 0
      ? `No bot got a seat: the finds were refused (${codes}).`
      : 'No bot got a seat in this time. If servers start slowly, let the bots play longer (--for 1m).',
  );
}

/** Returns the name of the wanted game mode, by default the first of the live version. Throws a Failure if it is missing. */
async function chooseMode(
  session: Session,
  { scope, player, wanted }: { scope: Scope; player: ApiCaller; wanted: string | undefined },
): Promise<string> {
  const { game, namespace } = scope;
  const { game_modes } = await player.get<{ game_modes: { game_mode_id: string }[] }>('/matchmaker/lobbies/list');
  const modes = game_modes.map(({ game_mode_id }) => game_mode_id);
  const [first] = modes;
  if (first === undefined) {
    const advice = `Deploy one: ${session.commandFor(game, `deploy ${namespace.name_id}`)}`;
    throw new Failure(`The live version has no game mode. ${advice}`, EXIT.not_found);
  }
  if (wanted === undefined || modes.includes(wanted)) return wanted ?? first;
  throw new Failure(`The live version has no game mode "${wanted}"; it has: ${modes.join(', ')}.`, EXIT.not_found);
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
export function showFigures(session: Session, scope: Scope, figures: BotFigures, event?: { event: string }): void {
  const { seats, find_p50_ms: p50, find_p95_ms: p95, connected, without_port, refusals, faults } = figures;
  session.show({ ...event, ...figures }, (output) => {
    const times = p50 === undefined ? '' : `, found in ${p50} ms (p50), ${p95} ms (p95)`;
    output.line(`seats      ${seats}${times}`);
    output.line(
      `connected  ${connected}${without_port > 0 ? `; ${counted(without_port, 'seat has', 'seats have')} no port for WebSockets` : ''}`,
    );
    for (const { code, count, ray_id } of refusals) {
      const advice =
        ray_id === undefined || WITHOUT_RECEIPT.test(code) ? '' : `: ${session.commandIn(scope, `why ${ray_id}`)}`;
      output.line(`refused    ${count} × ${code}${advice}`);
    }
    for (const { what, count } of faults) output.line(`fault      ${count} × ${what}`);
  });
}

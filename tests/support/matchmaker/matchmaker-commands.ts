import { expect } from 'bun:test';
import fc from 'fast-check';
import { outcomeOfCall } from './matchmaker.ts';
import type { Oracle } from './matchmaker-oracle.ts';
import { client, createBody, findBody, join, joinBody, number } from './matchmaker-requests.ts';
import type { Run } from './matchmaker-run.ts';
import { rush } from './matchmaker-rush.ts';
import type { LobbyState } from './matchmaking-state.ts';

type Command = fc.AsyncCommand<Oracle, Run, false>;

/** Returns a command with its arguments. `check`: whether it can run now. */
function command<Given>(
  name: string,
  given: Given,
  run: (oracle: Oracle, real: Run, given: Given) => Promise<void>,
  check: (oracle: Oracle) => boolean = () => true,
): Command {
  return {
    check,
    async run(oracle, real) {
      // Each command has its own time.
      real.advance(1);
      await run(oracle, real, given);
      await real.queue.settle();
      await real.check();
    },
    toString: () => `${name}(${JSON.stringify(given)})`,
  };
}

/** Returns one of several items for any number. */
const pick = <Item>(items: Item[], number: number): Item | undefined => items[number % Math.max(1, items.length)];

const hasLobby = (oracle: Oracle) => oracle.lobbies.length > 0;
const hasToken = (oracle: Oracle) => oracle.players.some(({ token }) => token !== undefined);

/** Returns a lobby: mostly a running one. */
function lobbyOf(oracle: Oracle, one: number): LobbyState | undefined {
  return pick(one === 0 || oracle.running_count === 0 ? oracle.lobbies : oracle.running(), one);
}

async function isAccepted(lobby: LobbyState, call: Promise<unknown>): Promise<boolean> {
  const outcome = await outcomeOfCall(call);
  const is_stopped = lobby.stop_reason !== undefined;
  expect(outcome).toEqual(is_stopped ? { code: 'MATCHMAKER_LOBBY_STOPPED' } : { answer: undefined });
  return !is_stopped;
}

const arbitraries = {
  find: fc.record({ body: findBody, client, is_hasty: fc.constantFrom(false, false, true) }).map((given) =>
    command('find', given, async (oracle, real, { body, client: from, is_hasty }) => {
      if (!is_hasty) await real.deliverNotifications();
      const expected = oracle.find(body, from);
      // Without the latest notifications a find may get a lobby that is not the fullest, but is never refused.
      const lenient = 'among' in expected && is_hasty ? { among: oracle.lobbiesFor(body) } : expected;
      await real.expectSeat({ kind: 'find', body, client: from }, lenient);
    }),
  ),
  wait: fc.record({ body: findBody, client }).map((given) =>
    command('find that waits', given, async (oracle, real, { body, client: from }) => {
      // While the end of a server is not noticed, more than one answer is right.
      if (oracle.lobbies.some(({ is_ending }) => is_ending)) {
        await real.reconcile();
        // Lobbies that ended make room for finds that waited before.
        await real.queue.settle();
      }
      await real.deliverNotifications();
      await real.queue.ask(body, from);
    }),
  ),
  abortQueued: number.map((given) =>
    command('abort while in the queue', given, (_oracle, real, one) => real.queue.abort(one)),
  ),
  join: fc.record({ join, client, is_by_code: fc.boolean() }).map((given) =>
    command(
      'join',
      given,
      async (oracle, real, { join: { number: one, players: together }, client: from, is_by_code }) => {
        const lobby = one === 11 && is_by_code ? undefined : lobbyOf(oracle, one);
        const body = joinBody(lobby, together);
        if (!is_by_code)
          return await real.expectSeat({ kind: 'join', body, client: from }, oracle.join(lobby, from, together));
        const { lobby_id, ...rest } = body;
        // The code of a stopped lobby finds no lobby.
        const expected = oracle.join(lobby?.stop_reason === undefined ? lobby : undefined, from, together);
        const code = await real.codeOf(lobby_id);
        await real.expectSeat({ kind: 'join', body: { ...rest, code }, client: from }, expected);
      },
    ),
  ),
  create: createBody.map((body) =>
    command('create', body, (oracle, real) => real.expectSeat({ kind: 'create', body }, oracle.create(body, 1))),
  ),
  rush: fc
    .array(fc.oneof({ weight: 3, arbitrary: findBody }, { weight: 1, arbitrary: join }), { minLength: 2, maxLength: 6 })
    .map((given) => command('rush', given, rush)),
  ready: number.map((given) =>
    command(
      'ready',
      given,
      async (oracle, real, one) => {
        const lobby =
          pick(
            oracle.lobbies.filter(({ is_ready }) => one === 0 || !is_ready),
            one,
          ) ?? lobbyOf(oracle, one);
        if (!lobby || !(await isAccepted(lobby, real.ready(lobby.lobby_id)))) return;
        oracle.ready(lobby);
        await real.answerAll(lobby);
        real.count('ready');
      },
      hasLobby,
    ),
  ),
  close: fc.record({ number, is_closed: fc.boolean() }).map((given) =>
    command(
      'close',
      given,
      async (oracle, real, { number: one, is_closed }) => {
        const lobby = lobbyOf(oracle, one);
        if (!lobby || !(await isAccepted(lobby, real.lobbies.setClosed(real.caller(lobby.lobby_id), is_closed))))
          return;
        oracle.setClosed(lobby, is_closed);
        real.count(is_closed ? 'close' : 'open');
      },
      hasLobby,
    ),
  ),
  connected: fc.record({ number, other: fc.constantFrom(undefined, undefined, undefined, 1, 2) }).map((given) =>
    command(
      'connected',
      given,
      async (oracle, real, { number: one, other }) => {
        const holders = oracle.players.filter(({ token }) => token !== undefined);
        const player = pick(holders.toReversed(), one);
        const lobby = other === undefined ? player?.lobby : pick(oracle.lobbies, other);
        if (!player?.token || !lobby) return;
        const outcome = await outcomeOfCall(
          real.lobbies.reportConnectFromServer(real.caller(lobby.lobby_id), player.token),
        );
        const code = oracle.connect(player, lobby);
        real.count(`connected ${code ?? ''}`);
        expect(outcome).toEqual(code === undefined ? { answer: undefined } : { code });
      },
      hasToken,
    ),
  ),
  connectedTwice: number.map((given) =>
    command(
      'connected by several at once',
      given,
      async (oracle, real, one) => {
        const player = pick(oracle.players.filter(({ token }) => token !== undefined).toReversed(), one);
        const { token } = player ?? {};
        if (!player || !token) return;
        const show = () =>
          outcomeOfCall(real.lobbies.reportConnectFromServer(real.caller(player.lobby.lobby_id), token));
        const outcomes = await Promise.all([show(), show(), show()]);
        const code = oracle.connect(player, player.lobby);
        real.count(`connected by several ${code ?? ''}`);
        expect(outcomes.filter((outcome) => 'answer' in outcome)).toHaveLength(code === undefined ? 1 : 0);
        const again = { code: code ?? 'MATCHMAKER_PLAYER_ALREADY_CONNECTED' };
        expect(outcomes).toContainEqual(again);
      },
      hasToken,
    ),
  ),
  disconnected: fc.record({ number, is_repeated: fc.boolean(), seconds: fc.constantFrom(0, 0, 0, 45) }).map((given) =>
    command(
      'disconnected',
      given,
      async (oracle, real, { number: one, is_repeated, seconds }) => {
        const player = pick(
          oracle.players.filter(({ token }) => token !== undefined),
          one,
        );
        const { token } = player ?? {};
        if (!player || !token) return;
        const left = { player_token: token, reconnect_within_ms: seconds * 1_000 };
        const leave = () => outcomeOfCall(real.lobbies.reportLeaveFromServer(real.caller(player.lobby.lobby_id), left));
        const outcomes = await Promise.all(is_repeated ? [leave(), leave()] : [leave()]);
        for (const outcome of outcomes) expect(outcome).toEqual({ answer: undefined });
        if (seconds === 0) oracle.remove([player], 'disconnected');
        else oracle.loseConnection(player, seconds * 1_000);
        real.count(seconds === 0 ? 'disconnected' : 'connection lost');
      },
      hasToken,
    ),
  ),
  abort: number.map((given) =>
    command('abort', given, async (_oracle, real, one) => {
      const waiting = pick(real.pending(), one);
      if (!waiting) return;
      await real.abort(waiting);
      real.count('abort');
    }),
  ),
  pass: fc
    .record({ seconds: fc.constantFrom(30, 61, 61, 181, 601), is_noticed: fc.constantFrom(true, true, false) })
    .map((given) =>
      command('time passes', given, async (_oracle, real, { seconds, is_noticed }) => {
        real.advance(seconds * 1_000);
        if (is_noticed) await real.reconcile();
        real.count(`${seconds} seconds pass`);
      }),
    ),
  reconcile: fc.constant(command('reconcile', undefined, (_oracle, real) => real.reconcile())),
  removed: number.map((given) =>
    command(
      'lobby removed',
      given,
      async (oracle, real, one) => {
        const lobby = lobbyOf(oracle, one);
        if (!lobby) return;
        const was_running = lobby.stop_reason === undefined;
        const { lobby_id } = lobby;
        expect(await real.lobbies.developerApi.remove({ ...real.scope, lobby_id })).toBe(was_running);
        if (!was_running) return;
        oracle.stop(lobby, 'removed');
        await real.answerAll(lobby, 'MATCHMAKER_LOBBY_STOPPED');
        real.count('removed');
      },
      hasLobby,
    ),
  ),
  serverEnds: number.map((given) =>
    command(
      'server ends',
      given,
      async (oracle, real, one) => {
        const lobby = lobbyOf(oracle, one);
        if (!lobby) return;
        // Until the end is noticed, the answer to a waiting find depends on chance.
        if (oracle.queue.length > 0) return;
        const server_id = await real.lobbies.serverOf({ ...real.scope, lobby_id: lobby.lobby_id });
        await real.matchmaker.servers.destroy(real.scope, server_id);
        lobby.is_ending = true;
        real.count('server ends');
      },
      hasLobby,
    ),
  ),
  version: fc.constantFrom('old' as const, 'new' as const).map((given) =>
    command('version', given, async (oracle, real, version) => {
      await real.matchmaker.namespaces.setVersion(real.scope, real.versionId(version));
      oracle.version = version;
      real.count(`version ${version}`);
    }),
  ),
} satisfies Record<string, fc.Arbitrary<Command>>;

const {
  find,
  wait,
  abortQueued,
  join: joins,
  create,
  rush: rushes,
  ready,
  close,
  connected,
  connectedTwice,
  disconnected,
} = arbitraries;
const { abort, pass, reconcile, removed, serverEnds, version } = arbitraries;

/** Returns series of commands, in which the usual actions of players are frequent. */
export function commands(maxCommands: number): fc.Arbitrary<Iterable<Command>> {
  const often = [find, find, find, find, wait, wait, joins, joins, create, rushes, ready, ready, ready];
  const seldom = [close, connected, connected, connectedTwice, disconnected, disconnected, disconnected, removed];
  const rare = [abort, abortQueued, pass, reconcile, removed, serverEnds, version];
  const all = [...often, ...often, ...often, ...seldom, ...seldom, ...rare];
  return fc.commands<Oracle, Run, false>(all, { maxCommands, size: 'max' });
}

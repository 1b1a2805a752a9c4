import { expect } from 'bun:test';
import fc from 'fast-check';
import type { CreateBody, FindBody } from '../../src/features/lobbies/wire.ts';
import { outcomeOf } from './matchmaker.ts';
import type { Oracle, OracleLobby } from './matchmaker-oracle.ts';
import type { Run } from './matchmaker-run.ts';
import { rush } from './matchmaker-rush.ts';

type Command = fc.AsyncCommand<Oracle, Run, false>;

/** A command that is made of what it is given; it may run when it has something to work on. */
function command<Given>(
  name: string,
  given: Given,
  run: (oracle: Oracle, real: Run, given: Given) => Promise<void>,
  check: (oracle: Oracle) => boolean = () => true,
): Command {
  return {
    check,
    async run(oracle, real) {
      // Each happens at a moment of its own.
      real.advance(1);
      await run(oracle, real, given);
      await real.check();
    },
    toString: () => `${name}(${JSON.stringify(given)})`,
  };
}

/** One of several, whichever number was drawn. */
const pick = <Item>(items: Item[], number: number): Item | undefined => items[number % Math.max(1, items.length)];

const nameless = <Members extends object>(members: Members) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Members;

const number = fc.nat(11);
const mostly = <Value>(usual: fc.Arbitrary<Value>, unusual: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 24, arbitrary: usual }, { weight: 1, arbitrary: unusual });
const players = mostly(fc.constantFrom(undefined, undefined, undefined, 1, 2, 2, 3), fc.constantFrom(4, 5));
const tags = fc.constantFrom(
  undefined,
  undefined,
  undefined,
  undefined,
  { color: 'red' },
  { color: 'red', size: 'big' },
);

export const findBody: fc.Arbitrary<FindBody> = fc
  .record({
    game_modes: mostly<string[]>(
      fc.constantFrom(['wide'], ['wide'], ['wide'], ['small'], ['wide', 'small'], ['small', 'wide']),
      fc.constantFrom(['gone'], ['small', 'gone']),
    ),
    regions: mostly<string[] | undefined>(
      fc.constantFrom(undefined, undefined, undefined, ['local'], ['far'], ['far', 'local']),
      fc.constant(['nowhere']),
    ),
    tags,
    players,
    prevent_auto_create_lobby: fc.constantFrom(undefined, undefined, undefined, true),
  })
  .map(nameless) as fc.Arbitrary<FindBody>;

const createBody = fc
  .record({
    game_mode: mostly(fc.constantFrom('wide', 'wide', 'small'), fc.constant('gone')),
    region: fc.constantFrom(undefined, undefined, 'far'),
    publicity: fc.constantFrom(undefined, 'public', 'private'),
    tags,
    players,
  })
  .map(nameless) as fc.Arbitrary<CreateBody>;

export interface Join {
  number: number;
  players: number | undefined;
}

export const join: fc.Arbitrary<Join> = fc.record({ number, players });

export const joinBody = (lobby: OracleLobby | undefined, players: number | undefined) => ({
  lobby_id: lobby?.lobby_id ?? crypto.randomUUID(),
  ...(players === undefined ? {} : { players }),
});

const hasLobby = (oracle: Oracle) => oracle.lobbies.length > 0;
const hasToken = (oracle: Oracle) => oracle.players.some(({ token }) => token !== undefined);

/** One that runs, mostly; else any. */
function lobbyOf(oracle: Oracle, one: number): OracleLobby | undefined {
  return pick(one === 0 || oracle.running().length === 0 ? oracle.lobbies : oracle.running(), one);
}

async function sayOf(lobby: OracleLobby, saying: Promise<unknown>): Promise<boolean> {
  const outcome = await outcomeOf(saying);
  const is_stopped = lobby.stop_reason !== undefined;
  expect(outcome).toEqual(is_stopped ? { code: 'MATCHMAKER_LOBBY_STOPPED' } : { answer: undefined });
  return !is_stopped;
}

const arbitraries = {
  find: fc.record({ body: findBody, is_hasty: fc.constantFrom(false, false, true) }).map((given) =>
    command('find', given, async (oracle, real, { body, is_hasty }) => {
      if (!is_hasty) await real.untilHeard();
      const expected = oracle.find(body);
      // Before news has come a find may go to a place that is not the fullest, but never to none.
      const suitable = oracle.lobbies.filter(
        (one) => oracle.suits(one, body) && real.isSeatable(one, body.players ?? 1),
      );
      await real.expectSeat({ kind: 'find', body }, 'among' in expected && is_hasty ? { among: suitable } : expected);
    }),
  ),
  join: fc.record({ join, is_by_code: fc.boolean() }).map((given) =>
    command('join', given, async (oracle, real, { join: { number: one, players: together }, is_by_code }) => {
      const lobby = one === 11 && is_by_code ? undefined : lobbyOf(oracle, one);
      const body = joinBody(lobby, together);
      if (!is_by_code) return await real.expectSeat({ kind: 'join', body }, oracle.join(lobby, together));
      const { lobby_id, ...rest } = body;
      // Nobody is led to a lobby that has stopped.
      const expected = oracle.join(lobby?.stop_reason === undefined ? lobby : undefined, together);
      await real.expectSeat({ kind: 'join', body: { ...rest, code: await real.codeOf(lobby_id) } }, expected);
    }),
  ),
  create: createBody.map((body) =>
    command('create', body, (oracle, real) => real.expectSeat({ kind: 'create', body }, oracle.create(body))),
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
        if (!lobby || !(await sayOf(lobby, real.host.ready(real.caller(lobby.lobby_id))))) return;
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
        if (!lobby || !(await sayOf(lobby, real.host.setClosed(real.caller(lobby.lobby_id), is_closed)))) return;
        lobby.is_closed = is_closed;
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
        const outcome = await outcomeOf(real.host.connected(real.caller(lobby.lobby_id), player.token));
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
        const show = () => outcomeOf(real.host.connected(real.caller(player.lobby.lobby_id), token));
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
        const leave = () => outcomeOf(real.host.disconnected(real.caller(player.lobby.lobby_id), left));
        const outcomes = await Promise.all(is_repeated ? [leave(), leave()] : [leave()]);
        for (const outcome of outcomes) expect(outcome).toEqual({ answer: undefined });
        if (seconds === 0) oracle.remove([player], 'disconnected');
        else oracle.lose(player, seconds * 1_000);
        real.count(seconds === 0 ? 'disconnected' : 'connection lost');
      },
      hasToken,
    ),
  ),
  hangUp: number.map((given) =>
    command('hang up', given, async (_oracle, real, one) => {
      const waiting = pick(real.pending(), one);
      if (!waiting) return;
      await real.hangUp(waiting);
      real.count('hang up');
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
        expect(await real.host.history.remove({ ...real.scope, lobby_id })).toBe(was_running);
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
        const server_id = await real.host.serverOf({ ...real.scope, lobby_id: lobby.lobby_id });
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

const { find, join: joins, create, rush: rushes, ready, close, connected, connectedTwice, disconnected } = arbitraries;
const { hangUp, pass, reconcile, removed, serverEnds, version } = arbitraries;

/** Series of commands; what players do most comes most. */
export function commands(maxCommands: number): fc.Arbitrary<Iterable<Command>> {
  const often = [find, find, find, find, joins, joins, create, rushes, ready, ready, ready];
  const seldom = [close, connected, connected, connectedTwice, disconnected, disconnected];
  const rare = [hangUp, pass, reconcile, removed, serverEnds, version];
  const all = [...often, ...often, ...often, ...seldom, ...seldom, ...rare];
  return fc.commands<Oracle, Run, false>(all, { maxCommands, size: 'max' });
}

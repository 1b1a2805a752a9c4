import { expect } from 'bun:test';
import { sql } from 'drizzle-orm';
import type { JoinAnswer } from '../../../src/features/lobbies/wire.ts';
import type { Inspector } from '../inspector.ts';
import { recordStart } from '../record-start.ts';
import type { TestService } from '../service.ts';
import { type Matchmaker, type SeatRequestBody, type SentRequest, TIMES } from './matchmaker.ts';
import type { VersionName } from './matchmaker-modes.ts';
import type { Expected, Oracle } from './matchmaker-oracle.ts';
import { createQueueRun } from './matchmaker-queue.ts';
import type { LobbyTraits } from './matchmaking-rules.ts';
import type { LobbyState } from './matchmaking-state.ts';

/** A namespace in which a series of commands runs, and the oracle that predicts it. */
export type Run = Awaited<ReturnType<typeof createRun>>;

interface RunOptions {
  matchmaker: Matchmaker;
  inspector: Inspector;
  clock: TestService['clock'];
  game: { game_id: string; versions: Record<VersionName, string> };
  name_id: string;
  oracle: Oracle;
  /** The number of times of each outcome. */
  counts: Map<string, number>;
}

/** A request whose seats are taken in a lobby that is not ready. */
interface Pending {
  request: SentRequest;
  lobby: LobbyState;
  player_ids: string[];
  /** Whether the lobby was created for it; undefined if that cannot be known. */
  is_new: boolean | undefined;
}

/** The seat of a request, or its refusal. */
export type Result = { lobby_id: string; player_id: string; answer?: JoinAnswer } | { code: string };

export async function createRun({ matchmaker, inspector, clock, game, name_id, oracle, counts }: RunOptions) {
  const { game_id } = game;
  const { queries } = matchmaker.database;
  const versionId = (version: string) => game.versions[version === 'new' ? 'new' : 'old'];
  const version_id = versionId(oracle.version);
  const namespace_id = await matchmaker.namespaces.create({ game_id, name_id, display_name: name_id, version_id });
  await queries.execute(sql`
    update namespaces set lobby_count_max = ${oracle.limits.lobby_count_max},
      max_players_per_client = ${oracle.limits.players_max}
    where namespace_id = ${namespace_id}`);
  const unsubscribe = matchmaker.subscribeTo(namespace_id);
  let pending: Pending[] = [];

  const count = (what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1);

  async function idsOf(answer: JoinAnswer): Promise<string[]> {
    const tokens = (answer.players ?? [answer.player]).map(({ token }) => token);
    expect(answer.player.token).toBe(tokens[0] ?? '');
    const callers = await Promise.all(tokens.map((token) => matchmaker.tokens.verifyKind(token, ['player'])));
    return callers.map(({ player_id }) => player_id);
  }

  /** Waits until a request is answered, or has its seats and waits for its lobby. */
  async function resultOf(request: SentRequest): Promise<Result> {
    const waits = await request.waits;
    if (waits) return waits;
    const outcome = await request.outcome;
    if ('code' in outcome) return outcome;
    const [player_id = ''] = await idsOf(outcome.answer);
    return { lobby_id: outcome.answer.lobby.lobby_id, player_id, answer: outcome.answer };
  }

  const readPlayers = () =>
    queries.execute<{ player_id: string; lobby_id: string; is_connected: boolean; remove_reason: string | null }>(sql`
      select player_id, lobby_id, connect_ts is not null as is_connected, remove_reason from players
      where namespace_id = ${namespace_id} order by player_id`);

  const readLobbies = () =>
    queries.execute<Record<string, unknown> & { lobby_id: string; stop_reason: string | null }>(sql`
      select lobby_id, version_id, game_mode, region, tags, publicity, player_count, is_closed, stop_reason,
        ready_ts is not null as is_ready
      from lobbies where namespace_id = ${namespace_id} order by lobby_id`);

  /** Checks that lobbies and players are exactly those of the oracle. */
  async function check(): Promise<void> {
    const [rows, lobbies, faults] = await Promise.all([readPlayers(), readLobbies(), inspector.faults(namespace_id)]);
    const players = oracle.players.map(({ player_id, lobby, state, remove_reason = null }) => {
      // For a player who has left, only the end counts, not whether the player was connected before.
      return { player_id, lobby_id: lobby.lobby_id, state, remove_reason };
    });
    const seen = rows.map(({ player_id, lobby_id, is_connected, remove_reason }) => {
      const state = remove_reason !== null ? 'gone' : is_connected ? 'connected' : 'awaited';
      return { player_id, lobby_id, state, remove_reason };
    });
    expect(seen).toEqual(players.toSorted((one, other) => (one.player_id < other.player_id ? -1 : 1)));
    expect(lobbies.map((lobby) => ({ ...lobby }))).toEqual(
      oracle.lobbies
        .map(({ lobby_id, version, game_mode, region, tags, publicity, is_closed, is_ready, taken, stop_reason }) => ({
          lobby_id,
          game_mode,
          region,
          tags,
          publicity,
          is_closed,
          is_ready,
          version_id: versionId(version),
          player_count: taken,
          stop_reason: stop_reason ?? null,
        }))
        .toSorted((one, other) => (one.lobby_id < other.lobby_id ? -1 : 1)),
    );
    expect(faults).toEqual([]);
  }

  /** Checks that the receipt of an answered request has its outcome. */
  async function checkReceipt({ ray_id, wanted }: SentRequest, outcome: object): Promise<void> {
    const receipt = await matchmaker.receipts.get(namespace_id, ray_id);
    const { players = 1 } = wanted.body;
    expect(receipt).toMatchObject({ kind: wanted.kind, request: { players } });
    expect(receipt.outcome).toEqual(outcome);
  }

  const lobbyIds = (): string[] => oracle.lobbies.map(({ lobby_id }) => lobby_id);

  /**
   * Checks the result of a request, and records its seats. `known`: the lobbies before it, and before others that may have been
   * decided together with it, because a lobby may then be new for several of them.
   */
  async function expectResult(
    request: SentRequest,
    result: Result,
    expected: Expected,
    known: readonly string[] = lobbyIds(),
  ): Promise<void> {
    const { kind } = request.wanted;
    count(`${kind} ${'code' in result ? result.code : 'creates' in expected ? 'new lobby' : 'seat'}`);
    if ('code' in result) {
      if (!('codes' in expected)) throw new Error(`got ${result.code} where ${JSON.stringify(expected)} was expected`);
      expect(expected.codes).toContain(result.code);
      await checkReceipt(request, { code: result.code });
      return;
    }
    if ('creates' in expected) {
      expect(lobbyIds()).not.toContain(result.lobby_id);
      return await recordSeats(request, result, oracle.createLobby(result.lobby_id, expected.creates), true);
    }
    const lobby = 'among' in expected && expected.among.find(({ lobby_id }) => lobby_id === result.lobby_id);
    if (!lobby) throw new Error(`got a seat in ${result.lobby_id} where ${JSON.stringify(expected)} was expected`);
    await recordSeats(request, result, lobby, known.includes(lobby.lobby_id) ? false : undefined);
  }

  /** Records the seats of a request. */
  async function recordSeats(
    request: SentRequest,
    result: Exclude<Result, { code: string }>,
    lobby: LobbyState,
    is_new?: boolean,
  ) {
    const { players = 1 } = request.wanted.body;
    const known = new Set(oracle.players.map(({ player_id }) => player_id));
    const fresh = (await readPlayers()).map(({ player_id }) => player_id).filter((player_id) => !known.has(player_id));
    // The players of a party have consecutive ids.
    const first = fresh.indexOf(result.player_id);
    const player_ids = first < 0 ? [] : fresh.slice(first, first + players);
    expect(player_ids).toHaveLength(players);
    oracle.seat(lobby, player_ids, request.wanted.client ?? 1);
    if (result.answer) await checkAnswer({ request, lobby, player_ids, is_new }, result.answer);
    else pending.push({ request, lobby, player_ids, is_new });
  }

  /** Checks an answer, and gives its tokens to the players of the oracle. */
  async function checkAnswer({ request, lobby, player_ids, is_new }: Pending, answer: JoinAnswer): Promise<void> {
    expect(answer.lobby.lobby_id).toBe(lobby.lobby_id);
    expect((await idsOf(answer)).toSorted()).toEqual(player_ids.toSorted());
    for (const { token } of answer.players ?? [answer.player]) {
      const { player_id } = await matchmaker.tokens.verifyKind(token, ['player']);
      const player = oracle.players.find((one) => one.player_id === player_id);
      if (player) player.token = token;
    }
    await checkReceipt(request, { lobby_id: lobby.lobby_id, is_new: is_new ?? expect.any(Boolean) });
  }

  return {
    matchmaker,
    oracle,
    namespace_id,
    count,
    check,
    resultOf,
    checkReceipt,
    recordSeats,
    lobbies: matchmaker.lobbies,
    scope: { game_id, namespace_id },
    caller: (lobby_id: string) => ({ kind: 'lobby', lobby_id }) as const,
    ask: (wanted: SeatRequestBody) => matchmaker.ask(namespace_id, wanted),
    pending: () => pending,
    /** Returns whether a lobby has the wanted traits. */
    async hasTraits(lobby_id: string, { version, maxima: _maxima, ...wanted }: LobbyTraits): Promise<boolean> {
      const row = (await readLobbies()).find((lobby) => lobby.lobby_id === lobby_id);
      if (!row) return false;
      const { version_id, game_mode, region, tags, publicity } = row;
      const seen = { version_id, game_mode, region, tags, publicity };
      return Bun.deepEquals(seen, { version_id: versionId(version), ...wanted });
    },
    async codeOf(lobby_id: string): Promise<string> {
      const rows = await queries.execute<{ code: string }>(sql`select code from lobbies where lobby_id = ${lobby_id}`);
      return rows[0]?.code ?? 'UNKNOWN0';
    },
    versionId,
    deliverNotifications: () => matchmaker.deliverNotifications(namespace_id),
    /** Records the start of a lobby's server, and calls `ready` as the server does. */
    async ready(lobby_id: string): Promise<void> {
      await recordStart(queries, lobby_id, clock.now());
      await matchmaker.lobbies.ready({ lobby_id });
    },
    /** Sends a request while no other is active, and checks its result. */
    async expectSeat(wanted: SeatRequestBody, expected: Expected): Promise<void> {
      const request = matchmaker.ask(namespace_id, wanted);
      await expectResult(request, await resultOf(request), expected);
    },
    queue: createQueueRun({
      matchmaker,
      oracle,
      namespace_id,
      resultOf,
      expectResult,
      count,
      version: () => versionId(oracle.version),
    }),
    /** Checks the answers to all requests that wait for a lobby. */
    async answerAll(lobby: LobbyState, code?: string): Promise<void> {
      const answered = pending.filter((one) => one.lobby === lobby);
      pending = pending.filter((one) => one.lobby !== lobby);
      for (const one of answered) {
        const outcome = await one.request.outcome;
        if ('answer' in outcome) {
          expect(code).toBeUndefined();
          await checkAnswer(one, outcome.answer);
        } else {
          expect(outcome.code).toBe(code ?? 'no refusal');
          await checkReceipt(one.request, { code: code ?? '' });
        }
      }
    },
    /** Aborts a request that waits for its lobby. */
    async abort(one: Pending): Promise<void> {
      pending = pending.filter((other) => other !== one);
      one.request.abort();
      expect(await one.request.outcome).toEqual({ code: 'API_CLIENT_GONE' });
      oracle.remove(
        oracle.players.filter(({ player_id }) => one.player_ids.includes(player_id)),
        'request_ended',
      );
      await checkReceipt(one.request, { code: 'API_CLIENT_GONE' });
    },
    /** Advances the clock. */
    advance(milliseconds: number): void {
      clock.advance(milliseconds);
      oracle.now_ms = clock.now().getTime();
    },
    /** Runs one step of the background work. */
    async reconcile(): Promise<void> {
      const running = oracle.running();
      await matchmaker.reconcile();
      const stopped = new Set((await readLobbies()).filter((one) => one.stop_reason).map(({ lobby_id }) => lobby_id));
      oracle.reconcile((lobby_id) => stopped.has(lobby_id));
      for (const lobby of running) {
        if (lobby.stop_reason !== undefined) await this.answerAll(lobby, 'MATCHMAKER_LOBBY_STOPPED');
      }
    },
    /** Advances beyond all time limits, and checks that every seat has ended for a reason. */
    async end(): Promise<void> {
      while (oracle.queue.length > 0) {
        await this.queue.abort(0);
        await this.queue.settle();
      }
      this.advance(TIMES.player_timeout_ms + TIMES.ready_timeout_ms);
      await this.reconcile();
      await check();
      expect(oracle.players.filter(({ remove_reason }) => remove_reason === undefined)).toEqual([]);
      expect(pending).toEqual([]);
    },
    /** Ends everything that the background work would process during later runs. */
    async sweep(): Promise<void> {
      for (const { request } of pending) {
        request.abort();
        await request.outcome;
      }
      await this.queue.sweep();
      unsubscribe();
      await queries.execute(sql`
        with ended as (
          update lobbies set stop_ts = now(), stop_reason = 'removed', player_count = 0
          where namespace_id = ${namespace_id} and stop_ts is null
        ), left_by as (
          update players set remove_ts = now(), remove_reason = 'lobby_stopped'
          where namespace_id = ${namespace_id} and remove_ts is null
        ) update lobby_counts set lobby_count = 0 where namespace_id = ${namespace_id}`);
    },
  };
}

import { describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { createReceipts } from '../../../src/features/lobbies/matchmaking/receipts/receipts.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import type { Answer, Api } from '../../support/api.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { deploy, makeGame, setLimits } from '../../support/game.ts';
import { connectGameServer, find, join, makeControlledGame, waitForFirstLobby } from '../../support/game-server.ts';
import { makeFullGame, queueUp } from '../../support/lobbies/queue.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const MINUTE_MS = 60_000;
const muster = shareService();

type Game = Awaited<ReturnType<typeof makeControlledGame>>;

const receiptsOf = ({ game_id, namespace_id }: Game) =>
  `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/receipts`;
const receiptOf = async (game: Game, { headers }: { headers: Headers }) =>
  (await muster.api.ok('GET', `${receiptsOf(game)}/${headers.get('rvt-ray-id')}`, { token: game.cloud_token })).receipt;

describe('a receipt shows', () => {
  test('the creation of a lobby, and the time of each stage', async () => {
    const game = await makeControlledGame(muster, {});
    const answer = await find(muster, game, { players: 2 });
    const receipt = await receiptOf(game, answer);
    expect(receipt).toMatchObject({
      ray_id: answer.headers.get('rvt-ray-id'),
      kind: 'find',
      version_id: game.version_id,
      request: { game_modes: ['default'], regions: ['local'], players: 2, creates: true },
      considered: [],
      rounds: 1,
      outcome: { lobby_id: answer.body.lobby.lobby_id, is_new: true },
    });
    const { checked, decided, seated, ready, answered } = receipt.stages_ms;
    expect([checked, decided, seated, ready, answered]).toEqual(
      [checked, decided, seated, ready, answered].toSorted((one, other) => one - other),
    );
    expect(JSON.stringify(receipt)).not.toContain(answer.body.player.token);
    expect(JSON.stringify(receipt)).not.toContain('127.0.0.1');
  });

  test('the candidates, the chosen one first, with a reason for each that was passed over', async () => {
    const mode = { max_players: 2, taggable: true, actions: { create: { enabled: true, enable_private: true } } };
    const game = await makeControlledGame(muster, {
      game_modes: { default: { ...mode, idle_lobbies: { min: 0, max: 8 } } },
    });
    const lobbyOf = async (body: object) => (await find(muster, game, body)).body.lobby.lobby_id as string;
    const full = await lobbyOf({ players: 2 });
    const closed = await lobbyOf({ players: 2 });
    const closing = await connectGameServer(muster, game, closed);
    await closing.setClosed(true);
    const made = await muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'default' });
    const chosen = await lobbyOf({ tags: { map: 'ice' } });
    const answer = await find(muster, game, { tags: { map: 'ice' } });
    expect(answer.body.lobby.lobby_id).toBe(chosen);
    const { considered, outcome } = await receiptOf(game, answer);
    expect(outcome).toEqual({ lobby_id: chosen, is_new: false });
    expect(considered[0]).toEqual({ lobby_id: chosen, game_mode_id: 'default', region_id: 'local', player_count: 1 });
    const reasons = Object.fromEntries(
      considered.map((one: { lobby_id: string; passed_over?: string }) => [one.lobby_id, one.passed_over]),
    );
    expect(reasons).toEqual({
      [chosen]: undefined,
      [full]: 'full',
      [closed]: 'closed',
      [made.body.lobby.lobby_id]: 'private',
    });
    const other = await find(muster, game, { tags: { map: 'sand' }, prevent_auto_create_lobby: true });
    expect(outcomeOf(other)).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
    const refused = await receiptOf(game, other);
    expect(refused.outcome).toEqual({ code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' });
    expect(refused.considered.map(({ passed_over }: { passed_over: string }) => passed_over).sort()).toEqual([
      'closed',
      'full',
      'full',
      'private',
    ]);
  });

  test('the version that decided, after a deployment while the find was in the queue', async () => {
    const game = await makeFullGame(muster);
    const waiter = await queueUp(muster, game);
    const version_id = await deploy(muster.api, game, game.matchmaker);
    await setLimits(muster.api, { ...game, token: game.cloud_token }, { lobby_count_max: 2 });
    const answer = await waiter.answer;
    expect(outcomeOf(answer)).toBe('200');
    expect(await receiptOf(game, answer)).toMatchObject({ version_id, outcome: { is_new: true } });
  });

  test('no more of the tags of a request than a request may have', async () => {
    const game = await makeControlledGame(muster, {});
    const tags = Object.fromEntries(
      Array.from({ length: 200 }, (_, number) => [`${number} ${'n'.repeat(900)}`, 'v'.repeat(1_000)]),
    );
    const refused = await find(muster, game, { tags });
    expect(outcomeOf(refused)).toBe('400 MATCHMAKER_TOO_MANY_TAGS');
    const shown = Object.entries((await receiptOf(game, refused)).request.tags as Record<string, string>);
    expect(shown.map(([name, value]) => [name.length, value.length])).toEqual(
      Array.from({ length: 8 }, () => [128, 512]),
    );
  });

  test('the outcome of a join, a create and a refusal', async () => {
    const mode = { max_players: 1, actions: { create: { enabled: true, enable_private: true } } };
    const game = await makeControlledGame(muster, { game_modes: { default: mode } });
    const { body } = await find(muster, game);
    const joined = await join(muster, game, body.lobby.lobby_id);
    expect(await receiptOf(game, joined)).toMatchObject({
      kind: 'join',
      request: { lobby_id: body.lobby.lobby_id, players: 1 },
      considered: [{ lobby_id: body.lobby.lobby_id, passed_over: 'full' }],
      outcome: { code: 'MATCHMAKER_LOBBY_FULL' },
    });
    const made = await muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'default' });
    expect(await receiptOf(game, made)).toMatchObject({ kind: 'create', outcome: { is_new: true } });
    const unknown = await find(muster, game, { game_modes: ['nothing'] });
    expect(await receiptOf(game, unknown)).toMatchObject({
      request: { game_modes: ['nothing'] },
      outcome: { code: 'MATCHMAKER_GAME_MODE_NOT_FOUND' },
    });
    const { receipts } = await waitFor(async () => {
      const list = await muster.api.ok('GET', receiptsOf(game), { token: game.cloud_token });
      return list.receipts.length === 4 ? list : undefined;
    }, 'the receipts to be stored');
    const kindsOf = (all: { kind: string }[]) => all.map(({ kind }) => kind);
    expect(kindsOf(receipts)).toEqual(['find', 'create', 'join', 'find']);
    const select = async (query: string) =>
      kindsOf((await muster.api.ok('GET', `${receiptsOf(game)}?${query}`, { token: game.cloud_token })).receipts);
    expect(await select('is_refused=true')).toEqual(['find', 'join']);
    expect(await select('code=MATCHMAKER_GAME_MODE_NOT_FOUND')).toEqual(['find']);
    expect(await select('code=MATCHMAKER_LOBBY_FULL')).toEqual(['join']);
    expect(await select('code=MATCHMAKER_TOO_MANY_LOBBIES')).toEqual([]);
    expect(await select(`before_create_ts=${encodeURIComponent(receipts[2].create_ts)}`)).toEqual(['find']);
  });
});

describe('a receipt', () => {
  test.each(['the queue', 'its lobby'])(
    'says that the client left while its find waited for %s',
    async (waited_for) => {
      const is_queued = waited_for === 'the queue';
      const game = await (is_queued ? makeFullGame(muster) : makeControlledGame(muster, { is_ready: false }));
      if (is_queued) (await queueUp(muster, game)).abort();
      else {
        const leaving = new AbortController();
        const finding = find(muster, game, {}, leaving.signal);
        await waitForFirstLobby(muster, game);
        leaving.abort();
        await expect(finding).rejects.toThrow('abort');
      }
      const [left] = await waitFor(async () => {
        const query = 'is_refused=true';
        const { receipts } = await muster.api.ok('GET', `${receiptsOf(game)}?${query}`, { token: game.cloud_token });
        return receipts.length > 0 ? receipts : undefined;
      }, 'the receipt to be stored');
      expect(left).toMatchObject({ kind: 'find', outcome: { code: 'API_CLIENT_GONE' } });
      const served = muster.events.find((event) => event.event === 'request_served' && event.ray_id === left.ray_id);
      expect(served).toMatchObject({ route: '/matchmaker/lobbies/find', status: 400 });
    },
  );

  test('is refused to callers without access to the namespace', async () => {
    const game = await makeControlledGame(muster, {});
    const answer = await find(muster, game);
    const ray_id = answer.headers.get('rvt-ray-id');
    const other = await makeGame(muster.api, muster.administrator_token);
    const path = `${receiptsOf(game)}/${ray_id}`;
    await waitFor(async () => {
      const { receipts } = await muster.api.ok('GET', receiptsOf(game), { token: game.cloud_token });
      return receipts.length === 1;
    }, 'the receipt to be stored');
    expect(outcomeOf(await muster.api.get(path, game.cloud_token))).toBe('200');
    expect(outcomeOf(await muster.api.get(path, other.cloud_token))).toBe('404 GAME_NOT_FOUND');
    const own = `/cloud/games/${other.game_id}/namespaces/${other.namespace_id}/matchmaker/receipts/${ray_id}`;
    expect(outcomeOf(await muster.api.get(own, other.cloud_token))).toBe('404 MATCHMAKER_RECEIPT_NOT_FOUND');
    expect(outcomeOf(await muster.api.get(path, game.public_token))).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
  });

  test('is kept for an hour, also by another process', async () => {
    await using first = await openTestService();
    const game = await makeControlledGame(first);
    const rayOf = async () => (await find(first, game)).headers.get('rvt-ray-id');
    const statusOf = async (service: { api: Api }, ray_id: string | null) =>
      (await service.api.get(`${receiptsOf(game)}/${ray_id}`, game.cloud_token)).status;
    const older = await rayOf();
    first.clock.advance(10 * MINUTE_MS);
    const younger = await rayOf();
    await using second = await openTestService({}, { database_of: first });
    for (const ray_id of [older, younger]) {
      await waitFor(async () => (await statusOf(second, ray_id)) === 200, 'the receipt in the other process');
    }
    first.clock.advance(51 * MINUTE_MS);
    // A process that starts deletes old receipts at once.
    await using third = await openTestService({}, { database_of: first });
    await waitFor(async () => (await statusOf(third, older)) === 404, 'the older receipt to be deleted');
    expect(await statusOf(third, younger)).toBe(200);
  });

  test('is written for at most as many requests a second as the operator allows', async () => {
    await using service = await openTestService({ MUSTER_RECEIPTS_PER_SECOND_MAX: '2' });
    const game = await makeControlledGame(service, { game_modes: { default: { max_players: 64 } } });
    const answers = await Promise.all(Array.from({ length: 24 }, () => find(service, game)));
    const read = ({ headers }: Answer) =>
      service.api.get(`${receiptsOf(game)}/${headers.get('rvt-ray-id')}`, game.cloud_token);
    const kept = (await Promise.all(answers.map(read))).filter(({ status }) => status === 200);
    const by_second = Map.groupBy(kept, ({ body }) => Math.floor(Date.parse(body.receipt.create_ts) / 1_000));
    expect(kept.length).toBeWithin(2, 24);
    expect(Math.max(...[...by_second.values()].map(({ length }) => length))).toBeLessThanOrEqual(2);
  });
});

test('receipts: without the database, they have its error, and a stop loses the last ones, says so, and succeeds', async () => {
  await using test_database = await openTestDatabase();
  const lost = openDatabase(test_database.address, 1);
  const emitted: string[] = [];
  const receipts = createReceipts({
    database: lost,
    clock: { now: () => new Date() },
    events: { emit: (event) => void ('loop' in event && emitted.push(event.loop)) },
    receipts_per_second_max: 10,
  });
  const [namespace_id, version_id, ray_id] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];
  const request = { players: 1, creates: true };
  const refuse = () => Promise.reject(new Error('refused'));
  const described = () => ({ ray_id, kind: 'find', version_id, namespace_id, request }) as const;
  await expect(receipts.withReceipt(described, refuse)).rejects.toThrow('refused');
  await lost[Symbol.asyncDispose]();
  const described_too = { ...described(), ray_id: crypto.randomUUID() };
  const read = async () => await lost.queries.execute(sql`select 1`);
  await receipts.withReceipt(() => described_too, read).catch(() => {});
  const { outcome } = await receipts.get(namespace_id, described_too.ray_id);
  expect(outcome).toEqual({ code: 'DATABASE_UNAVAILABLE' });
  const stopping = new AbortController();
  stopping.abort();
  await receipts.startWork(stopping.signal).stopped;
  expect(emitted).toEqual(['receipts']);
});

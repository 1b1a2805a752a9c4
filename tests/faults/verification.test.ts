import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Answer } from '../support/api.ts';
import { find, makeControlledGame, receiptOf } from '../support/game-server.ts';
import { hostileTargets } from '../support/network/hostile-target.ts';
import { answerText, answerWith, type Listener, listenAt, onRequest } from '../support/network/listener.ts';
import { openStoppedTarget } from '../support/network/stopped-target.ts';
import { openProvider } from '../support/provider.ts';
import { openTestService } from '../support/service.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const TIMEOUT_MS = 2_000;
const FAILED = '400 MATCHMAKER_VERIFICATION_FAILED';
const REQUEST_FAILED = '400 MATCHMAKER_VERIFICATION_REQUEST_FAILED';
// The operator allows requests to this address only; redirects lead to another.
const muster = shareService({
  MUSTER_OUTBOUND_ALLOW: '127.0.0.1',
  MUSTER_VERIFICATION_TIMEOUT_MS: String(TIMEOUT_MS),
  MUSTER_RECEIPTS_PER_SECOND_MAX: '10000',
});
const actionAt = (port: number) => ({ enabled: true, verification_config: { url: `http://127.0.0.1:${port}/` } });

let inside: Listener;
beforeAll(async () => {
  inside = await listenAt('127.0.0.5', answerWith(answerText(200)));
});
afterAll(() => inside[Symbol.asyncDispose]());

describe("verification: a game's own server that is hostile", () => {
  const behaviors = Object.entries(hostileTargets('http://127.0.0.5:9/')).map(
    ([behavior, { serve, outcome }], index) => ({ behavior, serve, outcome, game_mode: `mode-${index}` }),
  );
  const targets: Listener[] = [];
  let stopped: Awaited<ReturnType<typeof openStoppedTarget>>;
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  beforeAll(async () => {
    const with_redirects = Object.values(hostileTargets(`http://127.0.0.5:${inside.port}/`));
    for (const { serve } of with_redirects) targets.push(await listenAt('127.0.0.1', serve));
    stopped = await openStoppedTarget();
    const modes = behaviors.map(({ game_mode }, index) => [
      game_mode,
      { actions: { find: actionAt(targets[index]?.port ?? 0), create: actionAt(targets[index]?.port ?? 0) } },
    ]);
    const accepts_none = { actions: { find: actionAt(stopped.port) } };
    game = await makeControlledGame(muster, {
      game_modes: { ...Object.fromEntries(modes), 'accepts-none': accepts_none },
    });
  });
  afterAll(async () => {
    for (const target of targets) await target[Symbol.asyncDispose]();
    await stopped[Symbol.asyncDispose]();
  });

  for (const { behavior, outcome: target_outcome, game_mode } of behaviors) {
    const is_accepted = target_outcome === 200;
    const outcome = is_accepted ? '200' : typeof target_outcome === 'number' ? FAILED : REQUEST_FAILED;
    test(`${behavior}: ${outcome}, after one request for each find and create`, async () => {
      const target = targets[Number(game_mode.slice('mode-'.length))];
      const before = await muster.inspector.measure();
      const seats = await Promise.all([
        find(muster, game, { game_modes: [game_mode] }),
        muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode }),
      ]);
      expect(seats.map(outcomeOf)).toEqual([outcome, outcome]);
      expect(target?.connections).toBe(2);
      const { players } = await muster.inspector.measure();
      expect(Number(players) - Number(before.players)).toBe(is_accepted ? 2 : 0);
      if (!is_accepted) expect(await muster.inspector.measure()).toEqual(before);
    });
  }

  test('that accepts no connection has the same time limit', async () => {
    expect(outcomeOf(await find(muster, game, { game_modes: ['accepts-none'] }))).toBe(REQUEST_FAILED);
  });

  test('reaches no internal address by the redirects of these cases', () => {
    expect(inside.connections).toBe(0);
  });
});

test('verification: while the servers of one namespace do not answer, others find with and without verification', async () => {
  await using silent = await listenAt('127.0.0.1');
  await using other_silent = await listenAt('127.0.0.1');
  await using provider = openProvider();
  await using service = await openTestService({
    MUSTER_OUTBOUND_ALLOW: '127.0.0.1',
    MUSTER_VERIFICATION_TIMEOUT_MS: '60000',
  });
  const hanging = await makeControlledGame(service, {
    game_modes: {
      default: { actions: { find: actionAt(silent.port) } },
      other: { actions: { find: actionAt(other_silent.port) } },
    },
  });
  const verification = { url: provider.url };
  const verifying = await makeControlledGame(service, {
    game_modes: { default: { actions: { find: { enabled: true, verification } } } },
  });
  const plain = await makeControlledGame(service, {});
  let ended_count = 0;
  const leaving = new AbortController();
  // More than a target and a namespace may have at a time.
  const stuck = Array.from({ length: 200 }, async (_, index) => {
    const game_modes = [index % 2 === 0 ? 'default' : 'other'];
    await find(service, hanging, { game_modes }, leaving.signal).catch(() => {});
    ended_count += 1;
  });
  await waitFor(
    () => silent.connections + other_silent.connections === 64,
    'as many requests as one namespace may have',
  );
  for (let count = 0; count < 10; count += 1) {
    const answers = await Promise.all([find(service, plain), find(service, verifying)]);
    expect(answers.map(outcomeOf)).toEqual(['200', '200']);
  }
  // All finds of the first namespace still wait at the end.
  expect(ended_count).toBe(0);
  leaving.abort();
  await Promise.all(stuck);
});

test('verification: a server that does not answer is the reason also if requests have less time than it', async () => {
  await using silent = await listenAt('127.0.0.1');
  await using service = await openTestService({
    MUSTER_OUTBOUND_ALLOW: '127.0.0.1',
    MUSTER_REQUEST_TIMEOUT_MS: '2000',
    MUSTER_WATCH_HOLD_MS: '1000',
  });
  const action = actionAt(silent.port);
  const game = await makeControlledGame(service, { game_modes: { default: { actions: { find: action } } } });
  const found = await find(service, game);
  expect(outcomeOf(found)).toBe(REQUEST_FAILED);
  expect(await receiptOf(service, game, found)).toMatchObject({ verification: { failure: 'timeout' } });
  const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/matchmaker/verification/try`;
  const tried = await service.api.post(path, game.cloud_token, { kind: 'find', game_mode: 'default' });
  expect(tried.body).toMatchObject({ verification: { is_accepted: false, failure: 'timeout' } });
});

describe('verification: many requests, with a server that answers at random', () => {
  const ANSWERS = ['yes', 'no', 'broken', 'reset', 'late', 'redirect'] as const;
  const REQUESTS = 240;
  // Long enough for every good answer on a busy machine.
  const random_answers = shareService({
    MUSTER_OUTBOUND_ALLOW: '127.0.0.1',
    MUSTER_VERIFICATION_TIMEOUT_MS: '10000',
  });

  test('every player with a seat has exactly one positive answer', async () => {
    const answers_by_player = new Map<string, string[]>();
    await using target = await listenAt(
      '127.0.0.1',
      onRequest((socket, request) => {
        const { id, answer } = JSON.parse(request.split('\r\n\r\n')[1] ?? '').verification_data;
        answers_by_player.set(id, [...(answers_by_player.get(id) ?? []), answer]);
        if (answer === 'yes') socket.end(answerText(200));
        else if (answer === 'no') socket.end(answerText(403));
        else if (answer === 'broken') socket.end('HTTP/9 nonsense\r\n\r\n');
        else if (answer === 'reset') socket.resetAndDestroy();
        else if (answer === 'redirect') socket.end(answerText(307, { headers: { location: 'http://127.0.0.5/' } }));
      }),
    );
    const action = actionAt(target.port);
    const game = await makeControlledGame(random_answers, {
      game_modes: { default: { max_players: 16, actions: { find: action, join: action, create: action } } },
    });
    const ask = (kind: number, verification_data: object): Promise<Answer> => {
      if (kind === 0) return find(random_answers, game, { verification_data });
      const wanted = kind === 1 ? { lobby_id } : { game_mode: 'default' };
      const path = `/matchmaker/lobbies/${kind === 1 ? 'join' : 'create'}`;
      return random_answers.api.post(path, game.public_token, { ...wanted, verification_data });
    };
    const { body } = await ask(0, { id: 'first', answer: 'yes' });
    const { lobby_id } = body.lobby;
    const outcomes = await Promise.all(
      Array.from({ length: REQUESTS }, async (_, index) => {
        // Mostly positive, because a server that mostly fails is paused, which another test checks.
        const answer = index % 3 === 0 ? (ANSWERS[(index / 3) % ANSWERS.length] ?? 'yes') : 'yes';
        const id = String(index);
        // Few creates, because each starts a process.
        const kind = index % 40 === 7 ? 2 : index % 5 === 1 ? 1 : 0;
        return { id, answer, outcome: outcomeOf(await ask(kind, { id, answer })) };
      }),
    );
    for (const { id, answer, outcome } of outcomes) {
      const answers = answers_by_player.get(id) ?? [];
      expect(answers.length).toBeLessThanOrEqual(1);
      if (outcome === '200') expect(answers).toEqual(['yes']);
      if (outcome === FAILED) expect(['no', 'redirect']).toContain(answer);
      if (['no', 'redirect'].includes(answer)) expect([FAILED, REQUEST_FAILED]).toContain(outcome);
      if (['broken', 'reset', 'late'].includes(answer)) expect(outcome).toBe(REQUEST_FAILED);
    }
    const seated = outcomes.filter(({ outcome }) => outcome === '200').length + 1;
    const lobbies = await random_answers.inspector.lobbiesOf(game.namespace_id);
    expect(lobbies.reduce((sum, { player_count }) => sum + player_count, 0)).toBe(seated);
    expect(seated).toBeGreaterThan(50);
    expect(await random_answers.inspector.faults(game.namespace_id)).toEqual([]);
  });
});

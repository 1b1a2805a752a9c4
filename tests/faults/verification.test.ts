import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Answer } from '../support/api.ts';
import { hostileTargets } from '../support/hostile-target.ts';
import { answerText, answerWith, type Listener, listenAt, onRequest } from '../support/listener.ts';
import { openProvider } from '../support/provider.ts';
import { find, makePuppetGame } from '../support/puppet.ts';
import { openTestService } from '../support/service.ts';
import { openStoppedTarget } from '../support/stopped-target.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const TIMEOUT_MS = 2_000;
const FAILED = '400 MATCHMAKER_VERIFICATION_FAILED';
const REQUEST_FAILED = '400 MATCHMAKER_VERIFICATION_REQUEST_FAILED';
// The operator lets requests go to this one address; what redirects lead to is at another.
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

describe('a game’s own server that is hostile', () => {
  const behaviours = Object.entries(hostileTargets('http://127.0.0.5:9/')).map(
    ([behaviour, { serve, comes_to }], index) => ({ behaviour, serve, comes_to, game_mode: `mode-${index}` }),
  );
  const targets: Listener[] = [];
  let stopped: Awaited<ReturnType<typeof openStoppedTarget>>;
  let game: Awaited<ReturnType<typeof makePuppetGame>>;
  beforeAll(async () => {
    const with_redirects = Object.values(hostileTargets(`http://127.0.0.5:${inside.port}/`));
    for (const { serve } of with_redirects) targets.push(await listenAt('127.0.0.1', serve));
    stopped = await openStoppedTarget();
    const modes = behaviours.map(({ game_mode }, index) => [
      game_mode,
      { actions: { find: actionAt(targets[index]?.port ?? 0), create: actionAt(targets[index]?.port ?? 0) } },
    ]);
    const ports = [stopped.port, inside.port].map((port, index) => [
      `other-${index}`,
      { actions: { find: actionAt(port) } },
    ]);
    game = await makePuppetGame(muster, { game_modes: Object.fromEntries([...modes, ...ports]) });
  });
  afterAll(async () => {
    for (const target of targets) await target[Symbol.asyncDispose]();
    await stopped[Symbol.asyncDispose]();
  });

  for (const { behaviour, comes_to, game_mode } of behaviours) {
    const is_accepted = comes_to === 200;
    const outcome = is_accepted ? '200' : typeof comes_to === 'number' ? FAILED : REQUEST_FAILED;
    test(`${behaviour}: ${outcome}, by one request each`, async () => {
      const target = targets[Number(game_mode.slice('mode-'.length))];
      const before = await muster.ledger.measure();
      const seats = await Promise.all([
        find(muster, game, { game_modes: [game_mode] }),
        muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode }),
      ]);
      expect(seats.map(outcomeOf)).toEqual([outcome, outcome]);
      expect(target?.connections).toBe(2);
      const { players } = await muster.ledger.measure();
      expect(Number(players) - Number(before.players)).toBe(is_accepted ? 2 : 0);
      if (!is_accepted) expect(await muster.ledger.measure()).toEqual(before);
    });
  }

  test('one that accepts no connection has no longer than the others', async () => {
    expect(outcomeOf(await find(muster, game, { game_modes: ['other-0'] }))).toBe(REQUEST_FAILED);
  });

  test('nothing inside was reached by all of this', () => {
    expect(inside.connections).toBe(0);
  });
});

test('while the servers of one namespace answer nobody, others find, verified and not', async () => {
  await using silent = await listenAt('127.0.0.1');
  await using silent_too = await listenAt('127.0.0.1');
  await using provider = openProvider();
  await using patient = await openTestService({
    MUSTER_OUTBOUND_ALLOW: '127.0.0.1',
    MUSTER_VERIFICATION_TIMEOUT_MS: '60000',
  });
  const hanging = await makePuppetGame(patient, {
    game_modes: {
      default: { actions: { find: actionAt(silent.port) } },
      other: { actions: { find: actionAt(silent_too.port) } },
    },
  });
  const verification = { url: provider.url };
  const verifying = await makePuppetGame(patient, {
    game_modes: { default: { actions: { find: { enabled: true, verification } } } },
  });
  const plain = await makePuppetGame(patient, {});
  let over = 0;
  const leaving = new AbortController();
  // More than may be under way to one target, and of one namespace.
  const stuck = Array.from({ length: 200 }, async (_, index) => {
    const game_modes = [index % 2 === 0 ? 'default' : 'other'];
    await find(patient, hanging, { game_modes }, leaving.signal).catch(() => {});
    over += 1;
  });
  await waitFor(() => silent.connections + silent_too.connections === 64, 'all that may be under way');
  for (let count = 0; count < 10; count += 1) {
    const answers = await Promise.all([find(patient, plain), find(patient, verifying)]);
    expect(answers.map(outcomeOf)).toEqual(['200', '200']);
  }
  // All of the first namespace's still wait when the last of the others has his seat.
  expect(over).toBe(0);
  leaving.abort();
  await Promise.all(stuck);
});

describe('under a storm of requests, with a server that answers as it likes', () => {
  const WAYS = ['yes', 'no', 'broken', 'reset', 'late', 'redirect'] as const;
  const REQUESTS = 240;
  // So long that a busy machine ends none of the good answers.
  const stormy = shareService({
    MUSTER_OUTBOUND_ALLOW: '127.0.0.1',
    MUSTER_VERIFICATION_TIMEOUT_MS: '10000',
  });

  test('nobody sits without exactly one yes, and everybody with a seat has had one', async () => {
    const said = new Map<string, string[]>();
    await using target = await listenAt(
      '127.0.0.1',
      onRequest((socket, heard) => {
        const { id, way } = JSON.parse(heard.split('\r\n\r\n')[1] ?? '').verification_data;
        said.set(id, [...(said.get(id) ?? []), way]);
        if (way === 'yes') socket.end(answerText(200));
        else if (way === 'no') socket.end(answerText(403));
        else if (way === 'broken') socket.end('HTTP/9 nonsense\r\n\r\n');
        else if (way === 'reset') socket.resetAndDestroy();
        else if (way === 'redirect') socket.end(answerText(307, { headers: { location: 'http://127.0.0.5/' } }));
      }),
    );
    const action = actionAt(target.port);
    const game = await makePuppetGame(stormy, {
      game_modes: { default: { max_players: 16, actions: { find: action, join: action, create: action } } },
    });
    const ask = (kind: number, verification_data: object): Promise<Answer> => {
      if (kind === 0) return find(stormy, game, { verification_data });
      const wanted = kind === 1 ? { lobby_id } : { game_mode: 'default' };
      const path = `/matchmaker/lobbies/${kind === 1 ? 'join' : 'create'}`;
      return stormy.api.post(path, game.public_token, { ...wanted, verification_data });
    };
    const { body } = await ask(0, { id: 'first', way: 'yes' });
    const { lobby_id } = body.lobby;
    const outcomes = await Promise.all(
      Array.from({ length: REQUESTS }, async (_, index) => {
        // Mostly yes: a server that mostly fails is left alone, which is another test.
        const way = index % 3 === 0 ? (WAYS[(index / 3) % WAYS.length] ?? 'yes') : 'yes';
        const id = String(index);
        // Creates are few, for each is a process.
        const kind = index % 40 === 7 ? 2 : index % 5 === 1 ? 1 : 0;
        return { id, way, outcome: outcomeOf(await ask(kind, { id, way })) };
      }),
    );
    for (const { id, way, outcome } of outcomes) {
      const asked = said.get(id) ?? [];
      expect(asked.length).toBeLessThanOrEqual(1);
      if (outcome === '200') expect(asked).toEqual(['yes']);
      if (outcome === FAILED) expect(['no', 'redirect']).toContain(way);
      if (['no', 'redirect'].includes(way)) expect([FAILED, REQUEST_FAILED]).toContain(outcome);
      if (['broken', 'reset', 'late'].includes(way)) expect(outcome).toBe(REQUEST_FAILED);
    }
    const seated = outcomes.filter(({ outcome }) => outcome === '200').length + 1;
    const lobbies = await stormy.ledger.lobbiesOf(game.namespace_id);
    expect(lobbies.reduce((sum, { player_count }) => sum + player_count, 0)).toBe(seated);
    expect(seated).toBeGreaterThan(50);
    expect(await stormy.ledger.faults(game.namespace_id)).toEqual([]);
  });
});

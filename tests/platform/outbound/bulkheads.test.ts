import { describe, expect, test } from 'bun:test';
import { createOutbound } from '../../../src/platform/outbound/outbound.ts';
import { answerText, answerWith, listenAt, onRequest } from '../../support/network/listener.ts';
import { kindOf } from '../../support/outbound-failures.ts';
import { waitFor } from '../../support/wait.ts';

const REQUEST = { headers: {}, body: '{}', timeout_ms: 20_000, answer_bytes_max: 0 };
const LIMITS = { in_all: 8, of_account: 4, to_target: 2, break_ms: 300, slow_ms: 2_000 };
const open = (bulkhead_limits = LIMITS) => createOutbound({ allowed_private: ['127.0.0.1'], bulkhead_limits });
/** Returns the statuses of the answers. */
const statusesOf = async (sent: Promise<{ status: number }>[]) => (await Promise.all(sent)).map(({ status }) => status);
const addressOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}/`;

/** A target that answers the waiting requests when the test says so, and all later ones at once. */
async function openGate() {
  const waiting: (() => void)[] = [];
  let is_open = false;
  const listener = await listenAt(
    '127.0.0.1',
    onRequest((socket) => {
      const answer = () => void socket.end(answerText(200));
      if (is_open) answer();
      else waiting.push(answer);
    }),
  );
  return {
    listener,
    get waiting() {
      return waiting.length;
    },
    open() {
      is_open = true;
      for (const answer of waiting.splice(0)) answer();
    },
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

describe('concurrent requests', () => {
  test('to one target are limited: others wait, and more are refused', async () => {
    await using gate = await openGate();
    const outbound = open();
    const send = () => outbound.post(addressOf(gate.listener), REQUEST);
    const sent = Array.from({ length: 10 }, send);
    await waitFor(() => gate.waiting === 2, 'two requests');
    expect(await kindOf(send())).toBe('too_busy');
    expect(gate.listener.connections).toBe(2);
    gate.open();
    expect(await statusesOf(sent)).toEqual(Array(10).fill(200));
    expect(gate.listener.connections).toBe(10);
  });

  test('of one account are limited across its targets, without effect on other accounts', async () => {
    await using stuck = await openGate();
    await using stuck_too = await openGate();
    await using third = await listenAt('127.0.0.1', answerWith(answerText(200)));
    const outbound = open();
    const send = (account: string, target: { port: number }) =>
      outbound.post(addressOf(target), { ...REQUEST, account });
    const sent = [stuck, stuck, stuck_too, stuck_too].map(({ listener }) => send('first', listener));
    await waitFor(() => stuck.waiting + stuck_too.waiting === 4, 'four requests');
    const waiting = send('first', third);
    expect((await send('second', third)).status).toBe(200);
    expect(third.connections).toBe(1);
    stuck.open();
    stuck_too.open();
    expect(await statusesOf([...sent, waiting])).toEqual(Array(5).fill(200));
  });

  test('in all are limited', async () => {
    await using stuck = await openGate();
    const outbound = open({ ...LIMITS, in_all: 6 });
    const sent = ['first', 'second', 'third', 'fourth'].flatMap((account) =>
      Array.from({ length: 2 }, () => outbound.post(addressOf(stuck.listener), { ...REQUEST, account })),
    );
    await waitFor(() => stuck.waiting === 6, 'six requests');
    expect(stuck.listener.connections).toBe(6);
    stuck.open();
    expect(await statusesOf(sent)).toEqual(Array(8).fill(200));
  });

  test('of one account leave room for others, however many it has', async () => {
    await using stuck = await openGate();
    await using other = await listenAt('127.0.0.1', answerWith(answerText(200)));
    const outbound = open({ ...LIMITS, in_all: 4, of_account: 8, to_target: 8 });
    const send = (account: string, target: { port: number }) =>
      outbound.post(addressOf(target), { ...REQUEST, account });
    const sent = Array.from({ length: 8 }, () => send('first', stuck.listener));
    await waitFor(() => stuck.waiting === 2, 'two requests');
    expect((await send('second', other)).status).toBe(200);
    expect(stuck.listener.connections).toBe(2);
    stuck.open();
    expect(await statusesOf(sent)).toEqual(Array(8).fill(200));
  });

  test('that wait too long fail in time and are not sent later', async () => {
    await using stuck = await openGate();
    const outbound = open({ in_all: 1, of_account: 1, to_target: 1, break_ms: 300, slow_ms: 2_000 });
    const first = outbound.post(addressOf(stuck.listener), REQUEST);
    await waitFor(() => stuck.waiting === 1, 'the first request');
    expect(await kindOf(outbound.post(addressOf(stuck.listener), { ...REQUEST, timeout_ms: 50 }))).toBe('too_busy');
    stuck.open();
    await first;
    expect((await outbound.post(addressOf(stuck.listener), REQUEST)).status).toBe(200);
    expect(stuck.listener.connections).toBe(2);
  });

  test('whose turn comes after half of their time fail with too_busy, which is not the fault of the target', async () => {
    await using stuck = await openGate();
    const outbound = open({ in_all: 1, of_account: 1, to_target: 1, break_ms: 300, slow_ms: 2_000 });
    const client = new AbortController();
    const first = kindOf(outbound.post(addressOf(stuck.listener), { ...REQUEST, signal: client.signal }));
    await waitFor(() => stuck.waiting === 1, 'the first request');
    const began = performance.now();
    const late = kindOf(outbound.post(addressOf(stuck.listener), { ...REQUEST, timeout_ms: 2_000 }));
    await waitFor(() => performance.now() - began > 1_100, 'more than half of the time of the second request to pass');
    client.abort();
    await waitFor(() => stuck.waiting === 2, 'the turn of the second request');
    expect([await first, await late]).toEqual(['cancelled', 'too_busy']);
  });

  test('free their slot, however they end', async () => {
    await using stuck = await openGate();
    const outbound = open({ in_all: 1, of_account: 1, to_target: 1, break_ms: 300, slow_ms: 2_000 });
    for (let count = 0; count < 3; count += 1) {
      expect(await kindOf(outbound.post(addressOf(stuck.listener), { ...REQUEST, timeout_ms: 30 }))).toBe('timeout');
      const client = new AbortController();
      const left = kindOf(outbound.post(addressOf(stuck.listener), { ...REQUEST, signal: client.signal }));
      client.abort();
      expect(await left).toBe('cancelled');
    }
    stuck.open();
    expect((await outbound.post(addressOf(stuck.listener), REQUEST)).status).toBe(200);
  });
});

describe('a target that fails', () => {
  test('is paused for that account and no other, and the log has a warning', async () => {
    const paused: string[] = [];
    let is_failing = true;
    await using target = await listenAt(
      '127.0.0.1',
      onRequest((socket) => void (is_failing ? socket.destroy() : socket.end(answerText(200)))),
    );
    const outbound = createOutbound({
      allowed_private: ['127.0.0.1'],
      bulkhead_limits: LIMITS,
      onBreak: ({ account, origin }) => paused.push(`${account} ${origin}`),
    });
    const send = (account: string) => outbound.post(addressOf(target), { ...REQUEST, account });
    for (let count = 0; count < 8; count += 1) expect(await kindOf(send('first'))).toBe('unreachable');
    expect(await kindOf(send('first'))).toBe('paused');
    expect(target.connections).toBe(8);
    expect(paused).toEqual([`first http://127.0.0.1:${target.port}`]);
    is_failing = false;
    expect((await send('second')).status).toBe(200);
    // After the pause one request tries it again, then all may.
    await waitFor(
      () =>
        send('first').then(
          () => true,
          () => false,
        ),
      'the target to be tried again',
    );
    expect(await statusesOf([send('first'), send('first')])).toEqual([200, 200]);
  });

  const FAULTS = {
    unreachable: onRequest((socket) => void socket.destroy()),
    broken_answer: onRequest((socket) => void socket.end('this is no HTTP\r\n\r\n')),
    timeout: onRequest(() => {}),
  };
  const KINDS = ['unreachable', 'broken_answer', 'timeout'] as const;
  test.each(KINDS)('%s: a target that fails eight times in this way is paused', async (kind) => {
    await using target = await listenAt('127.0.0.1', FAULTS[kind]);
    const outbound = open();
    const send = () =>
      kindOf(outbound.post(addressOf(target), { ...REQUEST, timeout_ms: kind === 'timeout' ? 100 : 20_000 }));
    for (let count = 0; count < 8; count += 1) expect(await send()).toBe(kind);
    expect(await send()).toBe('paused');
  });

  test('stays paused until it answers, whatever else ends the request that tries it', async () => {
    await using target = await listenAt('127.0.0.1', () => {});
    const outbound = open({ ...LIMITS, break_ms: 1_000 });
    const post = (more: object) => kindOf(outbound.post(addressOf(target), { ...REQUEST, ...more }));
    for (let count = 0; count < 8; count += 1) {
      // The turn of the request before may end a moment after its answer.
      await waitFor(async () => (await post({ timeout_ms: 50 })) === 'timeout', 'a request that times out');
    }
    const leave = () => post({ signal: AbortSignal.timeout(50) });
    await waitFor(async () => (await leave()) === 'cancelled', 'a request that tries the target');
    expect(await leave()).toBe('paused');
  });

  test('is paused if callers leave because it does not answer', async () => {
    await using target = await listenAt('127.0.0.1', () => {});
    const outbound = open({ ...LIMITS, of_account: 8, in_all: 16, to_target: 8, slow_ms: 20 });
    const clients = Array.from({ length: 8 }, () => AbortSignal.timeout(300));
    const sent = clients.map((signal) => kindOf(outbound.post(addressOf(target), { ...REQUEST, signal })));
    expect(await Promise.all(sent)).toEqual(Array(8).fill('cancelled'));
    expect(await kindOf(outbound.post(addressOf(target), REQUEST))).toBe('paused');
  });

  test('is not paused for its statuses, for requests that were aborted, or for requests that were not allowed', async () => {
    await using target = await listenAt('127.0.0.1', answerWith(answerText(500)));
    const outbound = open();
    for (let count = 0; count < 20; count += 1) {
      expect((await outbound.post(addressOf(target), REQUEST)).status).toBe(500);
      const client = AbortSignal.abort();
      expect(await kindOf(outbound.post(addressOf(target), { ...REQUEST, signal: client }))).toBe('cancelled');
      expect(await kindOf(outbound.post(addressOf(target), { ...REQUEST, headers: { host: 'x' } }))).toBe(
        'bad_request',
      );
    }
    expect((await outbound.post(addressOf(target), REQUEST)).status).toBe(500);
  });
});

import { describe, expect, test } from 'bun:test';
import { createOutbound, OutboundFailure } from '../../../src/platform/outbound/outbound.ts';
import { answerText, answerWith, listenAt, onRequest } from '../../support/listener.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { waitFor } from '../../support/wait.ts';

const REQUEST = { headers: {}, body: '{}', timeout_ms: 20_000, answer_bytes_max: 0 };
const LIMITS = { in_all: 6, of_account: 4, to_target: 2, break_ms: 300 };
const open = (bulkhead_limits = LIMITS) => createOutbound({ allowed_private: ['127.0.0.1'], bulkhead_limits });
const kindOf = async (sent: Promise<unknown>) => (await rejectionOf(OutboundFailure, sent)).kind;
const addressOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}/`;

/** A target that answers those who wait when it is told to, and everybody after. */
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

describe('requests under way at one time', () => {
  test('to one target are so many, others wait for their turn, and more are refused', async () => {
    await using gate = await openGate();
    const outbound = open();
    const send = () => outbound.post(addressOf(gate.listener), REQUEST);
    const sent = Array.from({ length: 10 }, send);
    await waitFor(() => gate.waiting === 2, 'two requests');
    expect(await kindOf(send())).toBe('too_busy');
    expect(gate.listener.connections).toBe(2);
    gate.open();
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(gate.listener.connections).toBe(10);
  });

  test('of one account are so many, whatever its targets; others have theirs meanwhile', async () => {
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
    expect((await Promise.all([...sent, waiting])).length).toBe(5);
  });

  test('in all are so many', async () => {
    await using stuck = await openGate();
    const outbound = open();
    const sent = ['first', 'second', 'third', 'fourth'].flatMap((account) =>
      Array.from({ length: 2 }, () => outbound.post(addressOf(stuck.listener), { ...REQUEST, account })),
    );
    await waitFor(() => stuck.waiting === 6, 'six requests');
    expect(stuck.listener.connections).toBe(6);
    stuck.open();
    expect((await Promise.all(sent)).length).toBe(8);
  });

  test('a request that waits too long fails in time and is not sent later', async () => {
    await using stuck = await openGate();
    const outbound = open({ in_all: 1, of_account: 1, to_target: 1, break_ms: 300 });
    const first = outbound.post(addressOf(stuck.listener), REQUEST);
    await waitFor(() => stuck.waiting === 1, 'the first request');
    expect(await kindOf(outbound.post(addressOf(stuck.listener), { ...REQUEST, timeout_ms: 50 }))).toBe('too_busy');
    stuck.open();
    await first;
    expect((await outbound.post(addressOf(stuck.listener), REQUEST)).status).toBe(200);
    expect(stuck.listener.connections).toBe(2);
  });

  test('lanes: a request whose turn came after half of its time is too_busy, not the fault of its target', async () => {
    await using stuck = await openGate();
    const outbound = open({ in_all: 1, of_account: 1, to_target: 1, break_ms: 300 });
    const leaving = new AbortController();
    const first = kindOf(outbound.post(addressOf(stuck.listener), { ...REQUEST, signal: leaving.signal }));
    await waitFor(() => stuck.waiting === 1, 'the first request');
    const began = performance.now();
    const late = kindOf(outbound.post(addressOf(stuck.listener), { ...REQUEST, timeout_ms: 2_000 }));
    await waitFor(() => performance.now() - began > 1_100, 'more than half of the time of the second to be over');
    leaving.abort();
    await waitFor(() => stuck.waiting === 2, 'the turn of the second request');
    expect([await first, await late]).toEqual(['cancelled', 'too_busy']);
  });

  test('a place is free again, however a request ended', async () => {
    await using stuck = await openGate();
    const outbound = open({ in_all: 1, of_account: 1, to_target: 1, break_ms: 300 });
    for (let count = 0; count < 3; count += 1) {
      expect(await kindOf(outbound.post(addressOf(stuck.listener), { ...REQUEST, timeout_ms: 30 }))).toBe('timeout');
      const leaving = new AbortController();
      const left = kindOf(outbound.post(addressOf(stuck.listener), { ...REQUEST, signal: leaving.signal }));
      leaving.abort();
      expect(await left).toBe('cancelled');
    }
    stuck.open();
    expect((await outbound.post(addressOf(stuck.listener), REQUEST)).status).toBe(200);
  });
});

describe('a target that fails', () => {
  test('rests for that account, and no other; and the operator is told', async () => {
    const resting: string[] = [];
    let is_failing = true;
    await using target = await listenAt(
      '127.0.0.1',
      onRequest((socket) => void (is_failing ? socket.destroy() : socket.end(answerText(200)))),
    );
    const outbound = createOutbound({
      allowed_private: ['127.0.0.1'],
      bulkhead_limits: LIMITS,
      onBreak: ({ account, origin }) => resting.push(`${account} ${origin}`),
    });
    const send = (account: string) => outbound.post(addressOf(target), { ...REQUEST, account });
    for (let count = 0; count < 8; count += 1) expect(await kindOf(send('first'))).toBe('unreachable');
    expect(await kindOf(send('first'))).toBe('resting');
    expect(target.connections).toBe(8);
    expect(resting).toEqual([`first http://127.0.0.1:${target.port}`]);
    is_failing = false;
    expect((await send('second')).status).toBe(200);
    // After a rest it is tried again, by one request, and then by all.
    await waitFor(
      () =>
        send('first').then(
          () => true,
          () => false,
        ),
      'the target to be tried again',
    );
    expect((await Promise.all([send('first'), send('first')])).length).toBe(2);
  });

  const FAULTS = {
    unreachable: onRequest((socket) => void socket.destroy()),
    broken_answer: onRequest((socket) => void socket.end('this is no HTTP\r\n\r\n')),
    timeout: onRequest(() => {}),
  };
  const KINDS = ['unreachable', 'broken_answer', 'timeout'] as const;
  test.each(KINDS)('%s: a target that fails so eight times is left alone', async (kind) => {
    await using target = await listenAt('127.0.0.1', FAULTS[kind]);
    const outbound = open();
    const send = () => kindOf(outbound.post(addressOf(target), { ...REQUEST, timeout_ms: 100 }));
    for (let count = 0; count < 8; count += 1) expect(await send()).toBe(kind);
    expect(await send()).toBe('resting');
  });

  test('by its statuses, by those who left, or by what may not be sent, does not rest', async () => {
    await using target = await listenAt('127.0.0.1', answerWith(answerText(500)));
    const outbound = open();
    for (let count = 0; count < 20; count += 1) {
      expect((await outbound.post(addressOf(target), REQUEST)).status).toBe(500);
      const leaving = AbortSignal.abort();
      expect(await kindOf(outbound.post(addressOf(target), { ...REQUEST, signal: leaving }))).toBe('cancelled');
      expect(await kindOf(outbound.post(addressOf(target), { ...REQUEST, headers: { host: 'x' } }))).toBe(
        'bad_request',
      );
    }
    expect((await outbound.post(addressOf(target), REQUEST)).status).toBe(500);
  });
});

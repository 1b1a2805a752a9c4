import { describe, expect, test } from 'bun:test';
import { createOutbound, OutboundFailure } from '../../../src/platform/outbound/outbound.ts';
import { hostileTargets } from '../../support/network/hostile-target.ts';
import { answerText, answerWith, listenAt } from '../../support/network/listener.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { waitFor } from '../../support/wait.ts';

const outbound = createOutbound({ allowed_private: ['127.0.0.1'] });
const REQUEST = { headers: {}, body: '{"a":"ü"}', timeout_ms: 10_000, answer_bytes_max: 1_024 };
const addressOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}/check?game=1#part`;

describe('a hostile target', () => {
  const TIMEOUT_MS = 300;
  for (const [behavior, { serve, outcome }] of Object.entries(hostileTargets('http://127.0.0.1:1/'))) {
    test(`${behavior}: ${outcome}`, async () => {
      await using target = await listenAt('127.0.0.1', serve);
      // Where something other than the time ends the request, it has time enough.
      const timeout_ms = outcome === 'timeout' ? TIMEOUT_MS : 10_000;
      const answer = outbound.post(addressOf(target), { ...REQUEST, timeout_ms, answer_bytes_max: 0 });
      if (typeof outcome === 'number') expect(await answer).toEqual({ status: outcome, text: '' });
      else {
        const { kind, was_sent } = await rejectionOf(OutboundFailure, answer);
        expect([kind, was_sent]).toEqual([outcome, true]);
      }
      expect(target.connections).toBe(1);
    });
  }
});

test('outbound: a target without a listener is unreachable', async () => {
  const { port } = await (async () => {
    await using gone = await listenAt('127.0.0.1');
    return gone;
  })();
  const failure = await rejectionOf(OutboundFailure, outbound.post(addressOf({ port }), REQUEST));
  expect([failure.kind, failure.was_sent]).toEqual(['unreachable', false]);
});

test('outbound: an aborted request ends at once and closes its connection', async () => {
  const closed = Promise.withResolvers<void>();
  await using target = await listenAt('127.0.0.1', (socket) => void socket.on('close', () => closed.resolve()));
  const leaving = new AbortController();
  const answer = rejectionOf(OutboundFailure, outbound.post(addressOf(target), { ...REQUEST, signal: leaving.signal }));
  await waitFor(() => target.connections > 0, 'the connection');
  leaving.abort();
  expect(await answer).toMatchObject({ kind: 'cancelled', was_sent: true });
  await closed.promise;
});

describe('the body of an answer', () => {
  test('is returned as text', async () => {
    await using target = await listenAt('127.0.0.1', answerWith(answerText(403, { body: '{"success":"ü"}' })));
    expect(await outbound.post(addressOf(target), REQUEST)).toEqual({ status: 403, text: '{"success":"ü"}' });
  });

  test('above the maximum length is an invalid answer', async () => {
    await using target = await listenAt('127.0.0.1', answerWith(answerText(200, { body: 'x'.repeat(1_025) })));
    expect((await rejectionOf(OutboundFailure, outbound.post(addressOf(target), REQUEST))).kind).toBe('broken_answer');
  });

  test('below its Content-Length is an invalid answer', async () => {
    await using target = await listenAt(
      '127.0.0.1',
      answerWith(answerText(200, { headers: { 'content-length': '10' }, body: 'x' })),
    );
    expect((await rejectionOf(OutboundFailure, outbound.post(addressOf(target), REQUEST))).kind).toBe('broken_answer');
  });

  test('is not decompressed', async () => {
    const packed = Bun.gzipSync(Buffer.from('secret'));
    await using target = await listenAt('127.0.0.1', (socket) => {
      socket.on('data', () => {
        socket.write(
          answerText(200, { headers: { 'content-encoding': 'gzip', 'content-length': String(packed.length) } }),
        );
        socket.end(packed);
      });
    });
    expect((await outbound.post(addressOf(target), REQUEST)).text).not.toContain('secret');
  });
});

describe('a request', () => {
  test('has the given headers, the host of the target, and little else', async () => {
    await using target = await listenAt('127.0.0.1', answerWith(answerText(204)));
    await outbound.post(addressOf(target), { ...REQUEST, headers: { 'X-Key': 'value', 'User-Agent': 'mine' } });
    const [head = '', body] = (target.received[0] ?? '').split('\r\n\r\n');
    const [line, ...headers] = head.split('\r\n');
    expect(line).toBe('POST /check?game=1 HTTP/1.1');
    expect(headers.map((header) => header.toLowerCase()).sort()).toEqual([
      'accept-encoding: identity',
      'connection: close',
      'content-length: 10',
      `host: 127.0.0.1:${target.port}`,
      'user-agent: mine',
      'x-key: value',
    ]);
    expect(Buffer.from(body ?? '', 'latin1').toString()).toBe(REQUEST.body);
  });

  const BAD_HEADERS: [string, string][] = [
    ['x', 'a\r\nHost: inside'],
    ['x', 'a\nb'],
    ['x', '\0'],
    ['x', '€'],
    ['a b', 'x'],
    ['a\r\nb', 'x'],
    ['', 'x'],
    ...['Host', 'connection', 'Transfer-Encoding', 'content-length', 'Expect', 'Upgrade', 'TE', 'Accept-Encoding'].map(
      (name): [string, string] => [name, 'x'],
    ),
  ];
  for (const [name, value] of BAD_HEADERS) {
    test(`with the header ${JSON.stringify(name)}: ${JSON.stringify(value)} is not sent`, async () => {
      await using target = await listenAt('127.0.0.1', answerWith(answerText(200)));
      const sent = outbound.post(addressOf(target), { ...REQUEST, headers: { [name]: value } });
      expect((await rejectionOf(OutboundFailure, sent)).kind).toBe('bad_request');
      expect(target.connections).toBe(0);
    });
  }

  test('that fails reports no part of the address, which may contain secrets', async () => {
    const failure = await rejectionOf(OutboundFailure, outbound.post('http://127.0.0.1:1/?key=canary', REQUEST));
    expect(failure.message).not.toContain('canary');
  });
});

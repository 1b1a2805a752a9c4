import { expect, test } from 'bun:test';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { type KeyPair, openTlsPort } from '../../src/platform/http/ports/tls-port.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { fingerprintAt, makeCertificate } from '../support/network/tls.ts';
import { waitFor } from '../support/wait.ts';

test('https: a game server that has the port when the first certificate comes is ended', async () => {
  const port = findFreePort();
  const thief = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('the game server') });
  const emitted: ServiceEvent[] = [];
  const served = new Map<string, KeyPair>();
  let onChange = () => {};
  const certificates = {
    current: () => served,
    onChange(listener: () => void) {
      onChange = listener;
      return () => {};
    },
  };
  const freed: number[] = [];
  const tls_port = await openTlsPort({
    host: '127.0.0.1',
    port,
    request_timeout_ms: 1_000,
    hold_file: undefined,
    certificates,
    handlers: {
      fetch: () => new Response('the service'),
      answerUnsent: () => new Response('unsent'),
      async endServersOnPort(taken) {
        freed.push(taken);
        await thief.stop(true);
        return 1;
      },
    },
    events: { emit: (event) => void emitted.push(event) },
  });
  served.set('localhost', await makeCertificate(['localhost']));
  onChange();
  await waitFor(() => emitted.length > 0, 'the port to be opened');
  expect(freed).toEqual([port]);
  expect(emitted.map(({ event }) => event)).toEqual(['https_opened']);
  const answer = await fetch(`https://127.0.0.1:${port}`, { tls: { rejectUnauthorized: false } });
  expect(await answer.text()).toBe('the service');
  await tls_port.stop();
});

test('https: a port that could not be opened with new certificates is tried again', async () => {
  const events: ServiceEvent[] = [];
  const [first, second] = [await makeCertificate(['localhost']), await makeCertificate(['localhost'])];
  let served = first;
  let change = () => {};
  const certificates = {
    current: () => new Map([['localhost', served]]),
    onChange(listener: () => void) {
      change = listener;
      return () => {};
    },
  };
  const port = findFreePort();
  const opened = await openTlsPort({
    host: '127.0.0.1',
    port,
    request_timeout_ms: 10_000,
    hold_file: undefined,
    certificates,
    handlers: {
      fetch: () => new Response('hello'),
      answerUnsent: () => new Response('unsent'),
      endServersOnPort: async () => 0,
    },
    events: { emit: (event) => void events.push(event) },
  });
  const before = await fingerprintAt(port, 'localhost');
  served = { certificate: second.certificate, key: first.key };
  change();
  await waitFor(() => events.some(({ event }) => event === 'https_not_renewed'), 'the failure');
  served = second;
  const fingerprint = () => fingerprintAt(port, 'localhost').catch(() => before);
  await waitFor(async () => (await fingerprint()) !== before, 'the new certificate');
  expect(events.at(-1)?.event).toBe('https_opened');
  await opened.stop();
}, 300_000);

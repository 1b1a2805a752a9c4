import { describe, expect, test } from 'bun:test';
import { forwardApi } from '../../../src/features/servers/runtimes/engine/engine-network.ts';
import { holdConnections } from '../../support/network/held-connections.ts';
import { waitFor } from '../../support/wait.ts';

describe('the address of the API for containers of an engine', () => {
  test.each([
    ['http://127.0.0.1:8080', 'http://172.17.0.1:8080'],
    // The usual port of http, which a URL does not show.
    ['http://127.0.0.1:80', 'http://172.17.0.1:80'],
    ['http://localhost', 'http://172.17.0.1:80'],
    ['http://[::1]:80', 'http://172.17.0.1:80'],
    // Containers reach it as it is.
    ['http://192.0.2.7:80', 'http://192.0.2.7:80'],
  ])('of %s is %s', (api_url, address) => {
    const { replaceAddress } = forwardApi(api_url, '172.17.0.1');
    expect(replaceAddress({ API: api_url, OLD: `${api_url}/v1`, OTHER: 'http://127.0.0.1:9' })).toEqual({
      API: address,
      OLD: `${address}/v1`,
      OTHER: 'http://127.0.0.1:9',
    });
  });

  test('has brackets if the gateway has an IPv6 address', () => {
    const { replaceAddress } = forwardApi('http://127.0.0.1:8080', 'fd00::1');
    expect(replaceAddress({ API: 'http://127.0.0.1:8080/v1' })).toEqual({ API: 'http://[fd00::1]:8080/v1' });
  });
});

test('forwarded connections: they are accepted if the address exists only once the container has started', async () => {
  using api = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('ok') });
  const forward = forwardApi(`http://127.0.0.1:${api.port}`, '127.0.0.5');
  const has_started = AbortSignal.abort();
  await forward.ready(has_started);
  expect(await (await fetch(`http://127.0.0.5:${api.port}`)).text()).toBe('ok');
  forward.close();
});

test('forwarded connections: the wait for an address that never exists ends with the start', async () => {
  const forward = forwardApi('http://127.0.0.1:8080', '192.0.2.7');
  const starting = new AbortController();
  const ready = forward.ready(starting.signal);
  starting.abort();
  await ready;
});

test('forwarded connections: one container has at most half of them, and others reach the API meanwhile', async () => {
  using api = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('ok') });
  const forward = forwardApi(`http://127.0.0.1:${api.port}`, '127.0.0.2');
  await forward.ready(new AbortController().signal);
  const base_url = `http://127.0.0.2:${api.port}`;
  const text = 'GET / HTTP/1.1\r\n';
  {
    using greedy = holdConnections({ base_url, address: '127.0.0.3', count: 600, text });
    await waitFor(() => greedy.closedCount() > 0, 'connections to be refused');
    using other = holdConnections({ base_url, address: '127.0.0.4', count: 1, text: `${text}Host: api\r\n\r\n` });
    await waitFor(() => other.received[0]?.startsWith('HTTP/1.1 200'), 'another container to be answered');
    await waitFor(() => greedy.openCount() === 512 && greedy.closedCount() === 88, 'half of all places to be taken');
  }
  // Each takes a place as soon as one is free.
  const whole = `${text}Host: api\r\n\r\n`;
  using later = holdConnections({ base_url, address: '127.0.0.3', count: 512, text: whole, reopens: true });
  await waitFor(
    () => later.received.every((answer) => answer.startsWith('HTTP/1.1 200')),
    'all places to be used again',
  );
  forward.close();
});

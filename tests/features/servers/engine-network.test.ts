import { describe, expect, test } from 'bun:test';
import { forwardApi } from '../../../src/features/servers/runtimes/engine/engine-network.ts';

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

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openCredentials } from '../../../../src/features/servers/runtimes/kubernetes/credentials.ts';
import { StartError } from '../../../../src/platform/errors.ts';

describe('kubernetes: credentials', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'muster-kubeconfig-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const base64 = (text: string) => Buffer.from(text).toString('base64');

  async function write(user: object, { server = 'https://10.0.0.1:6443/', current = 'here' } = {}): Promise<string> {
    const file = join(directory, `${crypto.randomUUID()}.yaml`);
    const config = {
      'current-context': current,
      contexts: [{ name: 'here', context: { cluster: 'one', user: 'me', namespace: 'games' } }],
      clusters: [{ name: 'one', cluster: { server, 'certificate-authority-data': base64('the authority') } }],
      users: [{ name: 'me', user }],
    };
    await Bun.write(file, JSON.stringify(config));
    return file;
  }

  const REFUSED: [string, object, object, string][] = [
    ['that a program provides', { exec: { command: 'aws' } }, {}, 'its user logs in by a program'],
    [
      'without TLS',
      { token: 'a' },
      { server: 'http://10.0.0.1' },
      'it is not a kubeconfig (/clusters/0/cluster/server',
    ],
    ['without its context', { token: 'a' }, { current: 'there' }, 'it has no entry "there" in contexts'],
  ];
  test.each(REFUSED)('%s are refused with the reason', async (_, user, changes, reason) => {
    const file = await write(user, changes);
    expect(() => openCredentials(file)).toThrow(StartError);
    expect(() => openCredentials(file)).toThrow(reason);
  });

  test('that do not exist are refused with the name of the setting', () => {
    expect(() => openCredentials(join(directory, 'nothing'))).toThrow(/^MUSTER_KUBERNETES is ".*ENOENT/);
    expect(() => openCredentials('in-cluster')).toThrow('MUSTER_KUBERNETES is "in-cluster", which cannot be used');
  });

  test('of a kubeconfig are a token or a certificate, as text or in files beside it', async () => {
    const tls = { ca: 'the authority' };
    const url = 'https://10.0.0.1:6443';
    const with_token = openCredentials(await write({ token: 'secret' }));
    expect(with_token.namespace).toBe('games');
    expect(with_token.access()).toEqual({ url, token: 'secret', tls });
    await Bun.write(join(directory, 'token'), 'from a file\n');
    expect(openCredentials(await write({ tokenFile: 'token' })).access()).toEqual({ url, token: 'from a file', tls });
    await Bun.write(join(directory, 'key.pem'), 'the key');
    const user = { 'client-certificate-data': base64('the certificate'), 'client-key': 'key.pem' };
    expect(openCredentials(await write(user)).access()).toEqual({
      url,
      token: undefined,
      tls: { ...tls, cert: 'the certificate', key: 'the key' },
    });
  });
});

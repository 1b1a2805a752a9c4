import { expect, test } from 'bun:test';
import { claimDue, insertHosts } from '../../../src/features/certificates/store.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService();
const DIRECTORY = 'https://ca.example.com/directory';

test('certificates: processes that claim at the same moment get different hosts, and each host once', async () => {
  const { queries } = muster.database;
  for (let round = 0; round < 20; round += 1) {
    const directory = `${DIRECTORY}/${round}`;
    const hosts = ['a', 'b', 'c', 'd'].map((name) => `${name}.example.com`);
    const now = new Date();
    await insertHosts(queries, directory, hosts, now);
    const until = new Date(now.getTime() + 60_000);
    const claim = () => claimDue(queries, { directory, hosts, now, until });
    const claims = await Promise.all([claim(), claim(), claim(), claim()]);
    expect(claims.map((one) => one?.host).toSorted()).toEqual(hosts);
    expect(await claim()).toBeUndefined();
  }
});

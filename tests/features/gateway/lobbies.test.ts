import { expect, test } from 'bun:test';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { makeGame } from '../../support/game.ts';
import { find, makeControlledGame } from '../../support/game-server.ts';
import { SERVERS_DOMAIN, startWebServer } from '../../support/gateway.ts';
import { startedBy } from '../../support/servers.ts';
import { openTestService } from '../../support/service.ts';

const SETTINGS = { MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN };

test('gateway: every address in the answer of a find leads to the server at once', async () => {
  await using muster = await openTestService(SETTINGS);
  const ports = { game: { port: 80, protocol: 'https' }, voice: { port: 7_777, protocol: 'udp' } };
  const game = await makeControlledGame(muster, { ports });
  const { url, host } = { url: muster.config.local_url, host: new URL(muster.config.local_url).hostname };
  for (let players = 0; players < 5; players += 1) {
    const { body } = await find(muster, game, { prevent_auto_create_lobby: false });
    const { hostname, port, is_tls, host: address } = body.ports.game;
    expect(hostname).toEndWith(`-game.${SERVERS_DOMAIN}`);
    expect([port, is_tls, address]).toEqual([muster.config.port, false, `${hostname}:${port}`]);
    expect(body.lobby.ports).toEqual(body.ports);
    expect(body.ports.voice).toMatchObject({ hostname: host, is_tls: false });
    const answer = await fetch(url, { headers: { host: address } });
    expect((await answer.json()) as object).toHaveProperty('SERVICE_LOBBY_ID', body.lobby.lobby_id);
  }
}, 300_000);

test('gateway: each of two machines leads to the servers of both', async () => {
  await using one = await openTestService({ ...SETTINGS, MUSTER_SERVERS_MAX: '1' });
  const other_settings = { ...SETTINGS, MUSTER_SERVERS_MAX: '1' };
  const game = await makeGame(one.api, one.administrator_token);
  const first = await startWebServer(one, game);
  // Opened only now, so that the first machine takes the first server.
  await using other = await openTestService(other_settings, { database_of: one });
  // The second server is on the other machine, which has no uploads of the first.
  await cp(join(one.config.data_directory, 'builds'), join(other.config.data_directory, 'builds'), { recursive: true });
  const second = await startWebServer(one, game, { build: first.build });
  expect([startedBy(one), startedBy(other)]).toEqual([[first.server_id], [second.server_id]]);
  for (const { config } of [one, other]) {
    for (const { name } of [first, second]) {
      const headers = { host: `${name}.${SERVERS_DOMAIN}` };
      expect((await fetch(`${config.local_url}/headers`, { headers })).status).toBe(200);
    }
  }
}, 300_000);

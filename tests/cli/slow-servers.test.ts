import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';

/** A server that becomes ready after the time limit of a request. */
const SLOW_SOURCE = `await Bun.sleep(5_000);\n${ROOM_SOURCE}`;

const muster = shareService({ MUSTER_REQUEST_TIMEOUT_MS: '2000', MUSTER_WATCH_HOLD_MS: '1000' });
let home: string;
beforeAll(async () => {
  home = await mkdtemp(`${tmpdir()}/muster-slow-`);
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

async function makeFolder(name: string, matchmaker: string) {
  const ports = 'docker: {ports: {game: {port: 80, protocol: http}}}';
  const yaml = `game: ${name}\nbuild: {path: server.ts}\nmatchmaker: {${matchmaker}${ports}}\n`;
  return await makeProjectFolder(muster, home, { name, files: { 'server.ts': SLOW_SOURCE, 'muster.yaml': yaml } });
}

test('deploy: a lobby that needs longer than one find is waited for if the version has idle lobbies', async () => {
  const { run, liveVersion } = await makeFolder('slow', 'game_modes: {default: {idle_lobbies: {min: 1, max: 2}}}, ');
  const { exit_code, stderr } = await run('deploy', '--message', 'mine');
  expect([exit_code, stderr]).toEqual([0, expect.stringContaining('check    no lobby of the version is ready yet: ')]);
  expect(stderr).toContain('check    a lobby of the version was ready after');
  expect(await liveVersion()).toBe('mine');
}, 300_000);

test('deploy: without idle lobbies, a slow server gets no player, and the refusal names the deploy without a check', async () => {
  const { run } = await makeFolder('late', '');
  const { exit_code, stderr } = await run('deploy', 'staging');
  expect([exit_code, stderr]).toEqual([1, expect.stringContaining('did not become ready, so nothing was switched')]);
  expect(stderr).toMatch(
    /^If its server only needs longer: muster deploy staging --version [0-9a-f-]{36} --no-check$/m,
  );
}, 300_000);

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openExternalDatabase } from '../../support/database/database.ts';
import { makeGame, type TestGame, uploadBuild } from '../../support/game.ts';
import { type Home, makeHome, type Program } from '../../support/program.ts';
import { serversOf } from '../../support/servers.ts';
import { listTree, packTar } from '../../support/tar.ts';
import { waitFor } from '../../support/wait.ts';

const HOOK_TIMEOUT_MS = 300_000;
const FILES = 800;

describe('the service is killed while it unpacks a build', () => {
  let database: Awaited<ReturnType<typeof openExternalDatabase>>;
  let home: Home;
  let program: Program;
  let game: TestGame;
  beforeAll(async () => {
    database = await openExternalDatabase();
    home = await makeHome({ MUSTER_DEMO: 'off', DATABASE_URL: database.url });
    program = await home.start();
    game = await makeGame(program.api, program.administrator_token);
  }, HOOK_TIMEOUT_MS);
  afterAll(async () => {
    await home[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  }, HOOK_TIMEOUT_MS);

  const builds = () => join(home.data_directory, 'builds');
  const halves = () =>
    readdirSync(builds())
      .filter((name) => name.endsWith('.unfinished'))
      .map((name) => join(builds(), name));

  test('the next start removes what was half unpacked, unpacks the whole build, and runs it', async () => {
    const files = Array.from({ length: FILES }, (_, n) => ({ name: `map-${n}`, content: `${n}` }));
    const server = { name: 'server', content: '#!/bin/sh\nset -- map-*; echo $#; exec sleep 600\n', mode: 0o755 };
    const content = await packTar([server, ...files]);
    const build_id = await uploadBuild(program.api, game, {
      kind: 'archive',
      path: 'server.tar',
      content,
      command: ['./server'],
    });
    const place = join(builds(), build_id);
    const before = await listTree(place);

    // As on a machine that has never run it.
    rmSync(place, { recursive: true });
    const servers = serversOf(program, game);
    const { body } = await servers.create(await servers.bodyOf(build_id));
    const half = await waitFor(
      () => halves().find((path) => readdirSync(path).length > 20),
      'the first files to be unpacked',
    );
    await program.stop('SIGKILL');
    expect(readdirSync(half).length).toBeLessThan(FILES);
    expect(existsSync(place)).toBe(false);
    // Half of another build, which is never run.
    mkdirSync(join(builds(), `${crypto.randomUUID()}.${crypto.randomUUID()}.unfinished`));

    program = await home.start();
    expect(await serversOf(program, game).waitForLines(body.server.id, 1)).toEqual([`${FILES}`]);
    expect(await listTree(place)).toEqual(before);
    expect(readdirSync(builds())).toEqual([build_id]);
  }, 300_000);
});

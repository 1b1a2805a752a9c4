import { afterAll, expect, test } from 'bun:test';
import type { Answer } from '../support/api.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { type TestGame, uploadScript } from '../support/game.ts';
import { makeRoomGame, READY_SOURCE } from '../support/lobbies/room.ts';
import { mountSmallDisk } from '../support/objects/small-disk.ts';
import { makeHome, type Program, waitUntilReady } from '../support/program.ts';
import { openTestRuntime, PROCESS_RUNTIMES } from '../support/runtimes/runtimes.ts';
import { outcomeOf } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const DISK_MB = 640;
const RESERVE_MB = 128;
const SMALL_DISK_MB = 16;

const disk = await mountSmallDisk(DISK_MB);
afterAll(async () => {
  if (!disk) console.log('Not tried, because this user may not mount: a disk that is full.');
  await disk?.[Symbol.asyncDispose]();
});

test.skipIf(!disk)(
  'disk full: uploads are refused within the reserve, all writes on a full disk, and all work again once there is space',
  async () => {
    if (!disk) throw new Error('there is no disk');
    await using home = await makeHome({ MUSTER_DISK_RESERVE_MB: String(RESERVE_MB) }, { parent: disk.directory });
    const program = await home.start();
    const { api } = program;
    const game = await makeRoomGame(program, { source: READY_SOURCE, max_players: 100 });
    expect(outcomeOf(await find(program, game))).toBe('200');

    // Within the reserve: uploads are refused, and players get seats.
    await disk.fillUntil((RESERVE_MB - 28) * 1024 ** 2);
    expect(await outcomeOfUpload(program, game)).toBe('503 STORAGE_FULL');
    expect(outcomeOf(await find(program, game))).toBe('200');
    expect((await api.get('/health/ready')).status).toBe(200);
    await waitFor(() => program.output().includes('disk_space_low'), 'the warning in the log');

    // The disk is full: the service is not ready, and no answer is a 500.
    await disk.fillUntil(0);
    const unready = await waitFor(async () => {
      const found = outcomeOf(await find(program, game));
      expect(found).toMatch(/^200$|^503 (STORAGE_FULL|DATABASE_UNAVAILABLE|DATABASE_BUSY|MATCHMAKER_\w+)$/);
      const answer = await api.get('/health/ready');
      return answer.status === 503 && answer;
    }, 'the service not to be ready');
    expect(unready.body.metadata.reasons[0].code).toMatch(/DISK/);
    expect(await outcomeOfUpload(program, game)).toMatch(/^503 (STORAGE_FULL|DATABASE_UNAVAILABLE)$/);

    await disk.empty();
    await waitUntilReady(program.url);
    await waitFor(async () => outcomeOf(await find(program, game)) === '200', 'a find to get a seat');
    await uploadScript(api, game, READY_SOURCE);
  },
  300_000,
);

test.skipIf(!disk)(
  'disk full: a service with an external database starts again, and says which files it could not write',
  async () => {
    if (!disk) throw new Error('there is no disk');
    await using database = await openExternalDatabase();
    await using home = await makeHome({ DATABASE_URL: database.url }, { parent: disk.directory });
    await (await home.start()).stop('SIGINT');
    await disk.fillUntil(0);
    const program = await home.start();
    expect((await program.api.get('/cloud/games', program.administrator_token)).status).toBe(200);
    for (const name of ['administrator-token', 'metrics-token']) {
      await waitFor(() => program.output().includes(`"path":"${home.data_directory}/${name}"`), `a warning of ${name}`);
    }
    await program.stop('SIGINT');
    await disk.empty();
  },
  300_000,
);

test.skipIf(!disk)('disk full: a server that ends has its exit code', async () => {
  await using small = await mountSmallDisk(SMALL_DISK_MB);
  if (!small) throw new Error('this user can mount one disk, and not another');
  // All as one user, so that no copy of the executable has to be on the disk.
  const kind = PROCESS_RUNTIMES.at(-1) ?? PROCESS_RUNTIMES[0];
  await using opened = await openTestRuntime({ ...kind, open: () => kind.open(small.directory) });
  const server = await opened.run('trap "exit 7" TERM; echo up; while :; do sleep 0.05; done');
  await waitFor(async () => (await opened.output(server)) === 'up\n', 'the server to run');
  await small.fillUntil(0);
  await opened.stop(server);
  expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', exit_code: 7, exit_signal: null });
  await small.empty();
});

const find = ({ api }: Program, game: TestGame): Promise<Answer> =>
  api.post('/matchmaker/lobbies/find', game.public_token, { game_modes: ['default'] });

/** Returns the status and code of the first request of an upload that is refused, or of the last. */
async function outcomeOfUpload({ api }: Program, { game_id, namespace_id, cloud_token }: TestGame): Promise<string> {
  const content = Buffer.alloc(1_000_000, 1);
  const path = `/games/${game_id}/environments/${namespace_id}/builds/prepare`;
  const image_file = { path: 'server.ts', content_length: content.length };
  const prepared = await api.post(path, cloud_token, { name: 'Test build', kind: 'javascript', image_file });
  if (prepared.status !== 200) return outcomeOf(prepared);
  const response = await fetch(prepared.body.image_presigned_request.url, { method: 'PUT', body: content });
  const body = await response.json();
  return outcomeOf({ status: response.status, body, headers: response.headers });
}

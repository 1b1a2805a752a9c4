import { afterAll, beforeAll, expect, test } from 'bun:test';
import { servers as rows } from '../../src/features/servers/tables.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { makeGame } from '../support/game.ts';
import type { Program } from '../support/program.ts';
import { type ExternalHome, openExternalHome } from '../support/runtimes/external-home.ts';
import { serversOf, uploadShell } from '../support/servers.ts';
import { waitFor } from '../support/wait.ts';

const CHAINS = IS_FULL_LENGTH ? 24 : 8;
const KILLS = IS_FULL_LENGTH ? 8 : 3;
const RESTARTS = 3;
/** The longest time between the start of Muster and its kill. */
const KILLED_AFTER_MAX_MS = 1_200;
const ENDED_WITHIN_MS = 60_000;

let external: ExternalHome;
beforeAll(async () => {
  external = await openExternalHome();
}, 300_000);
afterAll(() => external[Symbol.asyncDispose](), 300_000);

test(`restarts: ${CHAINS} servers that crash, with ${KILLS} kills of Muster meanwhile: each crash has one restart, up to the maximum`, async () => {
  let program: Program = await external.home.start();
  const game = await makeGame(program.api, program.administrator_token);
  const build = await uploadShell(program.api, game, 'echo run; exit 3');
  const { bodyOf, create } = serversOf(program, game);
  const body = await bodyOf(build, {
    lifecycle: { restart: 'on_crash', restarts_max: RESTARTS },
    network: { ports: { game: { protocol: 'udp' } } },
  });
  const ids: string[] = await Promise.all(
    Array.from({ length: CHAINS }, async () => (await create(body)).body.server.id),
  );
  for (let kill = 0; kill < KILLS; kill += 1) {
    await Bun.sleep(Math.random() * KILLED_AFTER_MAX_MS);
    await program.stop('SIGKILL');
    program = await external.home.start();
  }
  const select = () => external.database.queries.select().from(rows).orderBy(rows.created_at).limit(10_000);
  const all = await waitFor(
    async () => {
      const found = await select();
      return found.length >= CHAINS * (1 + RESTARTS) && found.every(({ ended_at }) => ended_at !== null) && found;
    },
    'all servers to end',
    ENDED_WITHIN_MS,
  );
  const { linesOf } = serversOf(program, game);
  for (const id of ids) {
    const chain = all.filter(({ chain_id }) => chain_id === id);
    expect(chain.map(({ restart_count }) => restart_count)).toEqual([0, 1, 2, 3]);
    const members = chain.map(({ server_id }) => server_id);
    expect(chain.map(({ restart_of }) => restart_of)).toEqual([null, ...members.slice(0, -1)]);
    expect(chain.map(({ restarted_as }) => restarted_as)).toEqual([...members.slice(1), null]);
    expect(chain.map(({ exit_code }) => exit_code)).toEqual([3, 3, 3, 3]);
    expect(chain.map(({ start_after }) => start_after !== null)).toEqual([false, true, true, true]);
    for (const { server_id, start_after, started_at } of chain) {
      expect(await linesOf(server_id)).toEqual(['run']);
      // Of a server that crashed while Muster was killed, the start may not be recorded.
      if (started_at) expect(started_at.getTime()).toBeGreaterThanOrEqual(Number(start_after));
    }
  }
  expect(all).toHaveLength(CHAINS * (1 + RESTARTS));
  await program.stop('SIGINT');
}, 300_000);

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sessionOf } from '../../../src/platform/system/processes.ts';
import { openExternalDatabase } from '../../support/database/database.ts';
import { makeGame } from '../../support/game.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { type Home, makeHome, type Program } from '../../support/program.ts';
import { serversOf } from '../../support/servers.ts';
import { waitFor } from '../../support/wait.ts';

const KILLS = 3;
/** Writes numbers to one stream and each hundredth to the other: some 400 lines a second. */
const COUNTING = `n=0; trap 'echo end; exit 0' TERM
while :; do n=$((n+1)); echo $n; [ $((n % 100)) = 0 ] && echo $n >&2; [ $((n % 4)) = 0 ] && sleep 0.01; done`;

describe('a service that is killed repeatedly while servers write', () => {
  const opened = new AsyncDisposableStack();
  let home: Home;
  let program: Program;
  beforeAll(async () => {
    const { url } = opened.use(await openExternalDatabase());
    home = opened.use(await makeHome({ MUSTER_DEMO: 'off', DATABASE_URL: url }));
    program = await home.start();
  }, 300_000);
  afterAll(async () => {
    await opened.disposeAsync();
  }, 300_000);

  test('keeps every line once, and the servers keep their processes', async () => {
    const game = await makeGame(program.api, program.administrator_token);
    const servers = serversOf(program, game);
    const ids = [await servers.run(COUNTING), await servers.run(COUNTING)];
    const indexes = await Promise.all(ids.map(async (id) => (await servers.log(id)).body.watch.index));
    await Promise.all(ids.map(servers.waitForStart));
    const leaders = ids.flatMap(leadersOf);
    expect(leaders).toHaveLength(2);
    for (let kill = 0; kill < KILLS; kill += 1) {
      const [id = ''] = ids;
      const { watch } = (await servers.log(id)).body;
      // In the middle of writing: pieces are being stored.
      await servers.log(id, 'std_out', watch.index);
      await program.stop('SIGKILL');
      program = await home.start();
    }
    expect(ids.flatMap(leadersOf)).toEqual(leaders);
    for (const [position, id] of ids.entries()) {
      await serversOf(program, game).destroy(id);
      const lines = await readAll(id, indexes[position]);
      expect(lines.at(-1)).toBe('end');
      const numbers = lines.slice(0, -1).map(Number);
      const first = numbers[0] ?? 0;
      expect(numbers.findIndex((number, index) => number !== first + index)).toBe(-1);
      expect(numbers.length).toBeGreaterThan(KILLS * 20);
      expect(findProcessesOf(id)).toEqual([]);
    }

    /** Reads everything since an index until the server's last line. */
    async function readAll(id: string, begin: string | undefined): Promise<string[]> {
      const read: string[] = [];
      let index = begin;
      await waitFor(async () => {
        const { body } = await serversOf(program, game).log(id, 'std_out', index);
        read.push(...body.lines.map((line: string) => atob(line)));
        index = body.watch.index;
        return read.at(-1) === 'end';
      }, 'the last line');
      return read;
    }
  }, 300_000);
});

/** Returns the first processes of a server's sessions; there should be one. */
function leadersOf(server_id: string): number[] {
  return findProcessesOf(server_id).filter((pid) => sessionOf(pid) === pid);
}

import { readdirSync, readlinkSync } from 'node:fs';
import { makeGame } from '../../tests/support/game.ts';
import { serversOf, uploadShell } from '../../tests/support/servers.ts';
import { waitFor } from '../../tests/support/wait.ts';
import { openDatabaseOf } from './database.ts';
import { atMost, calm, exactly, type Fault, type FaultContext, holds, runConcurrently, secondsSince } from './fault.ts';
import { startAgain, stopBySignal } from './restarts.ts';
import type { Subject } from './subject.ts';

const CONCURRENCY = 16;
const GONE_S_MAX = 20;
const GONE_S_WAITED = 90;
const STARTED_S_WAITED = 120;
/** When to restart: most servers are still ending. */
const RESTART_AFTER_MS = 200;
const START_S_MAX = 20;

export const ending: Fault = {
  name: 'ending',
  title: '150, then 500 game servers of one caller are deleted at once; then 150 again, and the service is restarted',
  async run(context) {
    const [few, many] = context.is_quick ? [50, 150] : [150, 500];
    const servers_max = String(many + 50);
    const settings = { MUSTER_SERVERS_MAX: servers_max, MUSTER_SERVERS_PER_GROUP_MAX: servers_max };
    const subject = await context.start({ settings });
    const servers = await makeServers(context, subject);
    for (const size of [few, many]) {
      await servers.grow(size);
      await context.phase(subject, `${size} servers, calm`, calm);
      const name = `${size} servers end`;
      void servers.remove();
      const { result } = await context.phase(subject, name, () => servers.waitForEnd(), {
        deadline_s: GONE_S_WAITED + 30,
      });
      context.expect(atMost(`${size} servers gone, after`, GONE_S_MAX, result.seconds, 's'));
      if (result.left > 0) context.note(`servers left after ${GONE_S_WAITED} s`, `${result.left} of ${size}`);
      if (result.left > 0) break;
    }
    await servers.grow(few);
    const deleting = servers.remove();
    await Bun.sleep(RESTART_AFTER_MS);
    await stopBySignal(context, subject, 'SIGTERM');
    await deleting;
    const again = await startAgain(context, subject, { command: subject.command }, 60);
    context.expect(holds('the next start succeeds', again.starts === 1 && again.program !== undefined));
    if (again.starts > 1) context.note('why the next start failed', again.why);
    context.expect(atMost('ready again, after', START_S_MAX, again.seconds, 's'));
    if (!again.program) return;
    // Repeats the deletions that the restart cut off, as their caller would.
    void servers.remove();
    const options = { deadline_s: GONE_S_WAITED + 30 };
    const { result } = await context.phase(subject, 'after the restart', () => servers.waitForEnd(), options);
    context.expect(atMost('servers gone after the restart', GONE_S_MAX, result.seconds, 's'));
    context.expect(exactly('processes of these servers at the end', 0, servers.countProcesses()));
  },
};

/** Creates a game with servers that do nothing. */
async function makeServers(context: FaultContext, { home, program }: Subject) {
  const database = context.opened.use(openDatabaseOf(home));
  const game = await makeGame(program.api, program.administrator_token);
  const servers = serversOf(program, game);
  const body = await servers.bodyOf(await uploadShell(program.api, game, 'exec sleep 1000000\n'));
  const ids: string[] = [];

  const countOf = (state: 'started_at' | 'ended_at'): Promise<number> =>
    database.count(`select count(*) from servers where game_id = '${game.game_id}' and ${state} is not null`);
  const countLeft = async () => ids.length - (await countOf('ended_at'));

  return {
    /** Adds servers up to this number, and waits until all have started. */
    async grow(size: number): Promise<void> {
      const wanted = ids.length + size - (await countLeft());
      const create = async () => {
        const { server } = await program.api.ok('POST', servers.path, { token: game.cloud_token, body });
        ids.push(server.id);
      };
      const missing = Array.from({ length: wanted - ids.length }, () => create);
      await context.within(STARTED_S_WAITED, 'the servers to be created', runConcurrently(missing, CONCURRENCY));
      const haveStarted = async () => (await countOf('started_at')) === ids.length;
      await waitFor(haveStarted, 'the servers to start', STARTED_S_WAITED * 1_000);
    },
    /** Counts the processes that run in the folder of the build, whatever the database says. */
    countProcesses: (): number => listProcesses().filter((pid) => folderOf(pid).includes(body.runtime.build)).length,
    /** Requests the end of all servers. The answers do not matter, only whether the servers end. */
    async remove(): Promise<void> {
      const removals = ids.map((id) => async () => void (await servers.destroy(id).catch(() => {})));
      await runConcurrently(removals, CONCURRENCY);
    },
    /** Waits until no server is left, or the wait is over. Returns how many are left then, and after how long. */
    async waitForEnd(): Promise<{ left: number; seconds: number }> {
      const started = performance.now();
      const isOver = async () => (await countLeft()) === 0;
      await waitFor(isOver, 'the servers to end', GONE_S_WAITED * 1_000).catch(() => {});
      return { left: await countLeft(), seconds: secondsSince(started) };
    },
  };
}

const listProcesses = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** Returns a process's working directory; empty once it has ended. */
function folderOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
}

import { makeGame } from '../../tests/support/game.ts';
import { makeRoomGame, READY_SOURCE } from '../../tests/support/lobbies/room.ts';
import { serversOf, uploadShell } from '../../tests/support/servers.ts';
import { waitFor } from '../../tests/support/wait.ts';
import { openDatabaseOf } from './database.ts';
import { atMost, calm, exactly, type Fault, type FaultContext, runConcurrently, secondsSince } from './fault.ts';
import type { Subject } from './subject.ts';

const SERVERS_MAX = 16;
const REQUESTED = 300;
const CONCURRENCY = 16;
const LIFE_S = 4;
const FIND_S_MAX = 10;
const FIND_S_WAITED = 50;
const END_MS_MAX = 40_000;

export const machine: Fault = {
  name: 'machine',
  title: `a tenant requests ${REQUESTED} servers on a machine with room for ${SERVERS_MAX}, and another game requests one`,
  async run(context) {
    // The bystander's lobby already runs, so a third game makes the other request.
    const subject = await context.start({ settings: { MUSTER_SERVERS_MAX: String(SERVERS_MAX) }, idle_lobbies: 0 });
    const { program } = subject;
    await context.phase(subject, 'calm', calm);
    for (const [what, life] of [
      [`servers that end after ${LIFE_S} s`, String(LIFE_S)],
      ['servers that never end', 'infinity'],
    ] as const) {
      const tenant_servers = await takeMachine(context, subject, life);
      const other = await makeRoomGame(program, { source: READY_SOURCE });
      const find = async () => {
        const started = performance.now();
        const body = { game_modes: ['default'] };
        const signal = AbortSignal.timeout(FIND_S_WAITED * 1_000);
        const asked = program.api.call('POST', '/matchmaker/lobbies/find', { token: other.public_token, body, signal });
        const outcome = await asked.then(
          ({ status, body: answer }) => (status === 200 ? 'a lobby' : `${status} ${answer.code}`),
          () => 'no answer',
        );
        return { outcome, seconds: secondsSince(started) };
      };
      const { result } = await context.phase(subject, what, async () => (await Promise.all([find(), calm()]))[0]);
      const goal = atMost(`${what}: a lobby for the other game, after`, FIND_S_MAX, result.seconds, 's');
      const is_met = goal.is_met && result.outcome === 'a lobby';
      context.expect({ ...goal, figure: `${result.outcome} after ${goal.figure}`, is_met });
      context.note(`${what}: servers of the tenant that run`, String(await tenant_servers.running()));
      await tenant_servers.end();
    }
  },
};

/** Makes a game request more servers than there is room for. */
async function takeMachine(context: FaultContext, { home, program }: Subject, life: string) {
  const database = context.opened.use(openDatabaseOf(home));
  const game = await makeGame(program.api, program.administrator_token);
  const servers = serversOf(program, game);
  const body = await servers.bodyOf(await uploadShell(program.api, game, `exec sleep ${life}\n`));
  const ids: string[] = [];
  const refusals: Record<string, number> = {};
  const create = async () => {
    const answer = await servers.create(body);
    const refusal = `${answer.status} ${answer.body.code}`;
    if (answer.status === 200) ids.push(answer.body.server.id);
    else refusals[refusal] = (refusals[refusal] ?? 0) + 1;
  };
  await runConcurrently(
    Array.from({ length: REQUESTED }, () => create),
    CONCURRENCY,
  );
  if (Object.keys(refusals).length > 0) context.note('servers refused to the tenant', JSON.stringify(refusals));
  const unended = `servers where game_id = '${game.game_id}' and ended_at is null`;
  const running = () => database.count(`select count(*) from ${unended} and started_at is not null`);
  await waitFor(async () => (await running()) > 0, 'the servers to start', 30_000);
  await Bun.sleep(2_000);
  return {
    running,
    async end() {
      const removals = ids.map((id) => async () => void (await servers.destroy(id).catch(() => {})));
      await runConcurrently(removals, CONCURRENCY);
      const left = () => database.count(`select count(*) from ${unended}`);
      await waitFor(async () => (await left()) === 0, 'the servers to end', END_MS_MAX).catch(() => {});
      context.expect(exactly('servers left after their deletion', 0, await left()));
    },
  };
}

import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { selectMachines } from '../../../../src/features/machines/store.ts';
import { removeAbandoned } from '../../../../src/features/servers/abandoned.ts';
import { endWithMachine } from '../../../../src/features/servers/lost-machine.ts';
import { assignServer, insertServer } from '../../../../src/features/servers/store.ts';
import { makeGame, type TestGame, uploadScript } from '../../../support/game.ts';
import { waitingServer } from '../../../support/runtimes/waiting-server.ts';
import { shareService } from '../../../support/suite.ts';

const muster = shareService();

describe('what machines that were declared lost left in a cluster', () => {
  let game: TestGame;
  let build_id: string;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    build_id = await uploadScript(muster.api, game, '');
  });

  /** Makes a server of a machine. */
  async function makeServer(node_id: string): Promise<string> {
    const row = waitingServer({ ...game, build_id, datacenter_id: crypto.randomUUID() });
    await muster.database.transact(async (tx) => {
      await insertServer(tx, row);
      await assignServer(tx, row.server_id, { node_id, ports: {} });
    });
    return row.server_id;
  }

  /** Removes what abandoned machines left in a cluster. Returns the machines that it looked at, and what it removed. */
  async function remove(machine_ids: string[], in_cluster: string[]) {
    const listed: string[] = [];
    const removed: string[] = [];
    const other_machines = {
      async list(ids: readonly string[]) {
        listed.push(...ids);
        return in_cluster;
      },
      async remove(server_id: string) {
        removed.push(server_id);
      },
    };
    await removeAbandoned({
      database: muster.database,
      events: { emit() {} },
      runtime: { other_machines },
      machines: { machinesThatRemoveNoPods: () => machine_ids },
    });
    return { listed, removed };
  }

  test('is removed, also without a row, but not what a machine that came back has started', async () => {
    const node_id = crypto.randomUUID();
    const before = await makeServer(node_id);
    await muster.database.transact((tx) => endWithMachine(tx, node_id, { failure: 'lost', now: new Date() }));
    const after = await makeServer(node_id);
    const forgotten = crypto.randomUUID();
    const { listed, removed } = await remove([node_id], [before, after, forgotten]);
    expect(listed).toEqual([node_id]);
    expect(removed.toSorted()).toEqual([before, forgotten].toSorted());
  });

  test('is not looked for without such a machine', async () => {
    expect(await remove([], [crypto.randomUUID()])).toEqual({ listed: [], removed: [] });
  });

  test.each([
    ['lost', 599, false],
    ['lost', 601, true],
    ['resting', 6_000, false],
    ['stopped', 6_000, false],
    ['up', 6_000, false],
  ])('counts as abandoned if the machine has been %s for %d s: %p', async (state, seconds, is_abandoned) => {
    const { queries } = muster.database;
    const node_id = crypto.randomUUID();
    await queries.execute(sql`
      insert into machines (node_id, datacenter_id, name, place, holder, beat, beat_ts, state, state_ts, lost_after_ms)
      values (${node_id}::uuid, ${node_id}::uuid, 'test', 'here', ${node_id}::uuid, 1, now(), ${state},
        now() - ${seconds}::int * interval '1 s', 3600000)`);
    const machine = (await selectMachines(queries)).find((one) => one.node_id === node_id);
    expect(machine?.is_abandoned).toBe(is_abandoned);
  });
});

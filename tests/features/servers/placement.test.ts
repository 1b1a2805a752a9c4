import { beforeAll, describe, expect, test } from 'bun:test';
import type { PlacementMachine } from '../../../src/features/servers/placement/placement.ts';
import { insertServer, selectServerById } from '../../../src/features/servers/store.ts';
import type { ServerRow } from '../../../src/features/servers/tables.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { createPlacingMachine } from '../../support/machines/placing-machine.ts';
import { waitingServer } from '../../support/runtimes/waiting-server.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();

describe('a machine that could take a server', () => {
  let game: TestGame;
  let build_id: string;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    build_id = await uploadScript(muster.api, game, '');
  });

  interface Situation {
    is_alone?: boolean;
    is_unpacked?: boolean;
    /** Changes of the waiting server. */
    server?: Partial<ServerRow>;
    machine?: Partial<PlacementMachine>;
  }

  /** A machine of a datacenter with one waiting server. */
  async function machineWith({ is_alone = true, server = {}, ...options }: Situation) {
    const { database } = muster;
    const datacenter_id = crypto.randomUUID();
    const row = { ...waitingServer({ ...game, build_id, datacenter_id }), ...server };
    await database.transact((tx) => insertServer(tx, row));
    const machines = { isOtherSeenTakingServers: () => !is_alone };
    const { take, again_in } = createPlacingMachine(muster, { datacenter_id, machines, ...options });
    const nodeOf = async () => (await selectServerById(database.queries, row.server_id))?.node_id ?? null;
    return { take, nodeOf, again_in };
  }

  test.each([
    ['alone', { is_alone: true, is_unpacked: false }],
    ['beside another, with its build', { is_alone: false, is_unpacked: true }],
  ])('takes it at once: %s', async (_, machine) => {
    const { take, nodeOf, again_in } = await machineWith(machine);
    expect([await take(), again_in]).toEqual([1, []]);
    expect(await nodeOf()).not.toBeNull();
  });

  test('leaves it to another for a moment without its build, then takes it', async () => {
    const { take, nodeOf, again_in } = await machineWith({ is_alone: false, is_unpacked: false });
    expect(await take()).toBe(0);
    expect(await nodeOf()).toBeNull();
    // An empty machine waits only because it would have to unpack the build, and looks again right after that.
    expect(again_in).toEqual([expect.any(Number)]);
    expect(again_in[0]).toBeLessThanOrEqual(21);
    await waitFor(async () => (await take()) === 1, 'it to be taken');
    expect(await nodeOf()).not.toBeNull();
  });

  test('requests one round at a time, however often it is woken meanwhile', async () => {
    const { take, again_in } = await machineWith({ is_alone: false, machine: { servers_max: 1 } });
    const occupant = waitingServer({ ...game, build_id, datacenter_id: crypto.randomUUID() });
    for (let round = 0; round < 10; round += 1) expect(await take([occupant])).toBe(0);
    // First it leaves the server to the other machine, then it leaves the explanation to it. On a busy machine, some rounds
    // are so slow that they request another one.
    expect(again_in.length).toBeLessThan(5);
  });

  test('takes it to end it although the servers there use more than the machine has', async () => {
    const resources_max = { cpu: 1_000, memory: 1_024 };
    const { take, nodeOf } = await machineWith({ server: { destroyed_at: new Date() }, machine: { resources_max } });
    const beyond = { ...waitingServer({ ...game, build_id, datacenter_id: crypto.randomUUID() }), cpu: 2_000 };
    expect(await take([beyond])).toBe(1);
    expect(await nodeOf()).not.toBeNull();
  });
});

import { beforeAll, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { createLogs } from '../../../src/features/servers/logs/logs.ts';
import { insertServer, selectServerById } from '../../../src/features/servers/store.ts';
import { servers } from '../../../src/features/servers/tables.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { createPlacingMachine } from '../../support/machines/placing-machine.ts';
import { waitingServer } from '../../support/runtimes/waiting-server.ts';
import { textsOf } from '../../support/server-logs.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const FULL = expect.stringContaining('each machine of this region runs its maximum of servers');
/** Machines that find a reason at one time: more than attempts to add a line to one log. */
const MACHINES = 8;

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

/** Adds a server of the game that waits in a datacenter. Returns its id. */
async function addWaiting(datacenter_id: string, created_at = new Date()): Promise<string> {
  const row = { ...waitingServer({ ...game, build_id: crypto.randomUUID(), datacenter_id }), created_at };
  await muster.database.transact((tx) => insertServer(tx, row));
  return row.server_id;
}

const reasonOf = async (server_id: string) =>
  (await selectServerById(muster.database.queries, server_id))?.wait_reason ?? null;

async function linesOf(server_id: string): Promise<string[]> {
  const { lines } = await createLogs(muster).lastLines({ server_id, stream: 'std_err' });
  return textsOf(lines);
}

/** Creates a machine of a datacenter that has no room left. */
function createFull(datacenter_id: string, options: Partial<Parameters<typeof createPlacingMachine>[1]> = {}) {
  const created = createPlacingMachine(muster, { datacenter_id, machine: { servers_max: 1 }, ...options });
  const occupant = waitingServer({ ...game, build_id: crypto.randomUUID(), datacenter_id });
  return { ...created, take: () => created.take([occupant]) };
}

test('wait reasons: each server of a namespace gets its own line, and the operator one event', async () => {
  const datacenter_id = crypto.randomUUID();
  const first = await addWaiting(datacenter_id, new Date(0));
  const second = await addWaiting(datacenter_id, new Date(1));
  const { take, events } = createFull(datacenter_id);
  for (const server_id of [first, second]) {
    await take();
    await take();
    expect(await linesOf(server_id)).toEqual([FULL]);
    expect(await reasonOf(server_id)).toBe('machine_full');
    await muster.database.queries
      .update(servers)
      .set({ node_id: crypto.randomUUID() })
      .where(eq(servers.server_id, server_id));
  }
  expect(events).toEqual([
    { event: 'server_waits', server_id: first, namespace_id: game.namespace_id, reason: 'machine_full' },
  ]);
});

test('wait reasons: a machine says nothing of a server that another one may take at once', async () => {
  const datacenter_id = crypto.randomUUID();
  const server_id = await addWaiting(datacenter_id);
  const { take, events } = createFull(datacenter_id, { machines: { isOtherSeenTakingServers: () => true } });
  const begun = performance.now();
  await take();
  expect([await linesOf(server_id), await reasonOf(server_id), events]).toEqual([[], null, []]);
  await waitFor(async () => {
    await take();
    return events.length > 0;
  }, 'the other machine not to have taken it');
  // A full machine leaves a server to another one for 100 ms, and the explanation for longer.
  expect(performance.now() - begun).toBeGreaterThanOrEqual(1_000);
  expect([await linesOf(server_id), await reasonOf(server_id)]).toEqual([[FULL], 'machine_full']);
});

test('wait reasons: of several machines with one reason, one writes it', async () => {
  const datacenter_id = crypto.randomUUID();
  const server_id = await addWaiting(datacenter_id);
  const machines = Array.from({ length: MACHINES }, () => createFull(datacenter_id));
  await Promise.all(machines.map(({ take }) => take()));
  expect(await linesOf(server_id)).toEqual([FULL]);
  for (const { events } of machines) {
    expect(events).toEqual([expect.objectContaining({ event: 'server_waits', server_id })]);
  }
});

test('wait reasons: machines with different ones do not replace them in each round', async () => {
  const datacenter_id = crypto.randomUUID();
  const server_id = await addWaiting(datacenter_id);
  const full = createFull(datacenter_id);
  const at_quota = createPlacingMachine(muster, { datacenter_id, machine: { servers_per_group_max: 0 } });
  await full.take();
  await at_quota.take();
  expect(await reasonOf(server_id)).toBe('group_quota');
  await full.take();
  expect(await reasonOf(server_id)).toBe('group_quota');
  expect(await linesOf(server_id)).toHaveLength(2);
});

test('wait reasons: a line that cannot be written is reported, and placing goes on', async () => {
  const datacenter_id = crypto.randomUUID();
  const server_id = await addWaiting(datacenter_id);
  const cause = new Error('the log cannot be written');
  const logs = { ...createLogs(muster), addLine: () => Promise.reject(cause) };
  const { take, events } = createFull(datacenter_id, { logs });
  expect(await take()).toBe(0);
  expect(events).toContainEqual({ event: 'server_step_failed', server_id, step: 'report', cause });
});

test('wait reasons: a full machine that is drained names the drain only if all are drained', async () => {
  const datacenter_id = crypto.randomUUID();
  const server_id = await addWaiting(datacenter_id);
  let are_all_draining = false;
  const machines = {
    draining: () => [{ node_id: machine.node_id, is_deadline_over: false }],
    areAllDraining: () => are_all_draining,
  };
  const machine = createFull(datacenter_id, { machines });
  await machine.take();
  expect([await linesOf(server_id), await reasonOf(server_id), machine.events]).toEqual([[], null, []]);
  are_all_draining = true;
  await machine.take();
  expect(await reasonOf(server_id)).toBe('machines_draining');
});

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import * as store from '../../../src/features/machines/store.ts';
import { endWithMachine } from '../../../src/features/servers/lost-machine.ts';
import { assignServer, insertServer } from '../../../src/features/servers/store.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { waitingServer } from '../../support/runtimes/waiting-server.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const MOMENTS = 200;
const PROCESSES = 3;
const DATACENTER = crypto.randomUUID();
/** Statements that wait for a row. */
const WAITING_FOR_ROW = sql`
  select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

const muster = shareService();
const opened = new AsyncDisposableStack();
/** Connections of processes that act at the same time. */
let processes: Database[];
let game: TestGame;
let build_id: string;
beforeAll(async () => {
  processes = Array.from({ length: PROCESSES }, () => opened.use(openDatabase(muster.database_address, 2)));
  game = await makeGame(muster.api, muster.administrator_token);
  build_id = await uploadScript(muster.api, game, '');
});
afterAll(() => opened.disposeAsync());

/** A machine with a holder, whose servers the test assigns. */
async function makeMachine() {
  const machine = { node_id: crypto.randomUUID(), holder: crypto.randomUUID() };
  const own = { ...machine, datacenter_id: DATACENTER, name: 'test', place: 'here', lost_after_ms: 3_600_000 };
  expect(await muster.database.transact((tx) => store.registerMachine(tx, own, null))).toBe(true);
  return { ...own, beat: 1 };
}
type TestMachine = Awaited<ReturnType<typeof makeMachine>>;

/** Takes a new server for the machine, as its holder does. Returns its id; undefined if it may take none. */
async function takeServer({ transact }: Database, machine: TestMachine): Promise<string | undefined> {
  const row = waitingServer({ ...game, build_id, datacenter_id: DATACENTER });
  return await transact(async (tx) => {
    if (!(await store.lockHeld(tx, machine))) return undefined;
    await insertServer(tx, row);
    await assignServer(tx, row.server_id, { node_id: machine.node_id, ports: {} });
    return row.server_id;
  });
}

/** Writes the heartbeat of a machine. Returns whether its holder still has it. */
async function writeHeartbeat({ queries }: Database, machine: TestMachine): Promise<boolean> {
  return (await store.writeHeartbeats(queries, [machine])).written.has(machine.node_id);
}

async function declareLost({ transact }: Database, machine: TestMachine): Promise<number | undefined> {
  const end = { failure: 'its machine was lost', now: new Date() };
  return await transact((tx) => store.declareLost(tx, machine, () => endWithMachine(tx, machine.node_id, end)));
}

async function readMachine({ node_id }: TestMachine) {
  const row = await store.selectMachine(muster.database.queries, node_id);
  const [count] = await muster.database.queries.execute<{ open: number; lost: number }>(sql`
    select count(*) filter (where ended_at is null)::int as open,
      count(*) filter (where ended_at is not null and has_lost_machine)::int as lost
    from servers where node_id = ${node_id}::uuid`);
  return { state: row?.state, beat: row?.beat, open: count?.open, lost: count?.lost };
}

describe('machines: the moment of detection', () => {
  test(`a heartbeat, two that declare the machine lost, and a new server at one time, ${MOMENTS} times: one decides, and no server is left`, async () => {
    const [own, one, other] = processes as [Database, Database, Database];
    const outcomes = { written: 0, declared_lost: 0, taken: 0 };
    for (let moment = 0; moment < MOMENTS; moment += 1) {
      const machine = await makeMachine();
      const first = await takeServer(own, machine);
      expect(first).toBeDefined();
      // Each order is tried often: the calls begin in a different one each time.
      const calls = [
        () => writeHeartbeat(own, machine),
        () => declareLost(one, machine),
        () => declareLost(other, machine),
        () => takeServer(own, machine),
      ] as const;
      const begun = calls.map(async (call, index) => {
        await Bun.sleep((index + moment) % calls.length === 0 ? 0 : Math.random());
        return await call();
      });
      const [is_written, by_one, by_other, taken] = (await Promise.all(begun)) as [
        boolean,
        number | undefined,
        number | undefined,
        string | undefined,
      ];
      const declared_lost = [by_one, by_other].filter((count) => count !== undefined);
      const servers = taken === undefined ? 1 : 2;
      if (is_written) {
        expect(declared_lost).toEqual([]);
        expect(await readMachine(machine)).toEqual({ state: 'up', beat: 2, open: servers, lost: 0 });
      } else {
        expect(declared_lost).toEqual([servers]);
        expect(await readMachine(machine)).toEqual({ state: 'lost', beat: 1, open: 0, lost: servers });
      }
      outcomes.written += Number(is_written);
      outcomes.declared_lost += declared_lost.length;
      outcomes.taken += Number(taken !== undefined);
    }
    expect(outcomes.written + outcomes.declared_lost).toBe(MOMENTS);
    // Each outcome occurred, so the calls did overlap.
    for (const count of Object.values(outcomes)) expect(count).toBeGreaterThan(0);
  }, 300_000);

  test('a machine that was declared lost takes no work until its process is a new holder', async () => {
    const [own, other] = processes as [Database, Database];
    const machine = await makeMachine();
    expect(await declareLost(other, machine)).toBe(0);
    expect(await writeHeartbeat(own, machine)).toBe(false);
    expect(await takeServer(own, machine)).toBeUndefined();
    const back = { ...machine, holder: crypto.randomUUID() };
    expect(await own.transact((tx) => store.registerMachine(tx, back, null))).toBe(true);
    expect(await takeServer(own, back)).toBeDefined();
    // What the earlier holder has under way cannot take work any more.
    expect(await takeServer(own, machine)).toBeUndefined();
    expect(await writeHeartbeat(own, machine)).toBe(false);
  });

  test('a machine that takes work is not declared lost meanwhile, and its heartbeat does not wait', async () => {
    const [own, other, third] = processes as [Database, Database, Database];
    const machine = await makeMachine();
    const { promise: end, resolve: finish } = Promise.withResolvers<void>();
    const { promise: locked, resolve: lock } = Promise.withResolvers<void>();
    const working = own.transact(async (tx) => {
      expect(await store.lockHeld(tx, machine)).toEqual({ is_draining: false });
      lock();
      await end;
    });
    await locked;
    expect(await writeHeartbeat(third, machine)).toBe(true);
    const declaring = declareLost(other, { ...machine, beat: 2 });
    await waitFor(
      async () => (await third.queries.execute(WAITING_FOR_ROW)).length > 0,
      'the other to wait for the row',
    );
    expect(Bun.peek.status(declaring)).toBe('pending');
    finish();
    await working;
    expect(await declaring).toBe(0);
  });

  test('a machine whose servers take long to end keeps no other from being drained or declared lost', async () => {
    const [one, other] = processes as [Database, Database];
    const [slow, quick] = [await makeMachine(), await makeMachine()];
    const ended = await one.transact((tx) =>
      store.declareLost(tx, slow, async () => {
        expect(await declareLost(other, quick)).toBe(0);
        expect(await other.transact((own) => store.setDrain(own, quick.node_id, null))).toBe(true);
        return 3;
      }),
    );
    expect(ended).toBe(3);
    expect(await readMachine(slow)).toMatchObject({ state: 'lost' });
  });

  test('a machine in another place is not replaced while it is up, unless its heartbeat was seen unchanged', async () => {
    const [database] = processes as [Database];
    const machine = await makeMachine();
    const copy = { ...machine, holder: crypto.randomUUID(), place: 'elsewhere' };
    const register = (unchanged_beat: number | null) =>
      database.transact((tx) => store.registerMachine(tx, copy, unchanged_beat));
    expect(await register(null)).toBe(false);
    expect(await register(2)).toBe(false);
    expect(await writeHeartbeat(database, machine)).toBe(true);
    expect(await register(1)).toBe(false);
    expect(await register(2)).toBe(true);
    expect(await writeHeartbeat(database, machine)).toBe(false);
  });
});

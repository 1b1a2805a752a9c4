import { afterAll, describe, expect, test } from 'bun:test';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { type GroupMachine, type MachineGroup, openMachineGroup } from '../support/machines/machine-group.ts';
import { openNetwork, WITHOUT_NETWORK } from '../support/network/network.ts';
import { makeDataDirectory } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

/** What operators are promised, with the default settings. */
const FOUND_WITHIN_MS = 40_000;
const GONE_WITHIN_MS = 10_000;
/** A machine is lost after 30 s. Longer than that, and than the beat after it. */
const LONGER_THAN_LOST_MS = 40_000;
const DATABASE_OUTAGE_MS = 90_000;
const FIND_EVERY_MS = 500;
const HOUR_S = 3_600;
const TEST_TIMEOUT_MS = 600_000;
const FAKETIME = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`;
const has_faketime = IS_FULL_LENGTH && (await Bun.file(FAKETIME).exists());

afterAll(() => {
  if (!IS_FULL_LENGTH)
    console.log(
      'Not tried, because only a run at full length tries it: machines that are stopped, killed and cut off.',
    );
});

const describeLong = describe.skipIf(!IS_FULL_LENGTH);
const seconds = (since: number) => ((performance.now() - since) / 1_000).toFixed(1);

/** How a machine is lost, and how it comes back. */
interface Loss {
  lose(machine: GroupMachine): Promise<void>;
  /** Brings the machine back, so that it can act. */
  bringBack(machine: GroupMachine): Promise<void>;
}

/** Loses a machine with a player on it, and brings it back. Checks what players and operators are promised. */
async function loseAndBringBack(group: MachineGroup, lost: GroupMachine, { lose, bringBack }: Loss): Promise<void> {
  const other = group.machines.find((machine) => machine !== lost);
  if (!other) throw new Error('a group has several machines');
  const seated = await group.seatOn(lost);
  const { holder } = (await group.rows()).get(lost.machine_id) ?? {};

  const lost_at = performance.now();
  await lose(lost);
  const elsewhere = await waitFor(
    async () => {
      const { lobby_id } = await seatOf(find(other.program, seated.game));
      await Bun.sleep(FIND_EVERY_MS);
      return lobby_id !== seated.lobby_id && lobby_id;
    },
    'a find to get a seat elsewhere',
    FOUND_WITHIN_MS,
  );
  const found_after = seconds(lost_at);
  await waitFor(
    async () => (await group.readEnd(seated))?.stop_reason === 'machine_lost',
    'the lobby of the lost machine to end',
    FOUND_WITHIN_MS,
  );
  const ended_after = seconds(lost_at);
  expect((await group.readEnd(seated))?.seated).toBe(0);
  expect((await group.rows()).get(lost.machine_id)).toMatchObject({ state: 'lost', holder });
  // No process that runs could end it.
  expect(group.isAlive(seated)).toBe(true);

  const back_at = performance.now();
  await bringBack(lost);
  await waitFor(() => !group.isAlive(seated), 'the old game server to end', GONE_WITHIN_MS);
  const gone_after = seconds(back_at);
  await group.operatorOf(other).waitForState(lost.machine_id, 'up');
  expect((await group.rows()).get(lost.machine_id)?.holder).not.toBe(holder);
  // It takes work again, and the lobby elsewhere was left alone.
  const again = await group.seatOn(lost);
  expect((await group.readEnd({ ...seated, lobby_id: elsewhere }))?.stop_reason).toBeNull();
  expect((await group.readEnd(again))?.stop_reason).toBeNull();
  expect(await group.faults()).toEqual([]);
  console.log(
    `elsewhere after ${found_after} s, declared lost after ${ended_after} s, old server gone after ${gone_after} s`,
  );
}

describeLong('two machines on one database', () => {
  const opened = new AsyncDisposableStack();
  let group: MachineGroup;
  const openGroup = async () => {
    group ??= opened.use(await openMachineGroup(2));
    return group.machines as [GroupMachine, GroupMachine];
  };
  afterAll(() => opened.disposeAsync(), 300_000);

  test(
    'the first is paused (SIGSTOP)',
    async () => {
      const [first] = await openGroup();
      await loseAndBringBack(group, first, {
        lose: async ({ program }) => void process.kill(program.pid, 'SIGSTOP'),
        bringBack: async ({ program }) => void process.kill(program.pid, 'SIGCONT'),
      });
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'the second is killed, and started again',
    async () => {
      const [, second] = await openGroup();
      await loseAndBringBack(group, second, {
        lose: async ({ program }) => void (await program.stop('SIGKILL')),
        async bringBack(machine) {
          machine.program = await machine.home.start();
        },
      });
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'the first loses its database only: its players play on until it is back',
    async () => {
      const [first, second] = await openGroup();
      await loseAndBringBack(group, first, {
        lose: ({ database_proxy }) => database_proxy.cut(),
        bringBack: ({ database_proxy }) => database_proxy.heal(),
      });
      // And the second, whose packets vanish.
      let release = () => {};
      await loseAndBringBack(group, second, {
        async lose({ database_proxy }) {
          release = database_proxy.hold();
          database_proxy.stall();
        },
        async bringBack({ database_proxy }) {
          release();
          // Those of its connections that were not used meanwhile are silent still, and would fail once each.
          await database_proxy.cut();
          await database_proxy.heal();
        },
      });
    },
    TEST_TIMEOUT_MS,
  );
});

describeLong('three machines on one database', () => {
  test(
    'are all kept while the database is unreachable for 90 s',
    async () => {
      await using group = await openMachineGroup(3);
      const seated = await group.seatOnEach();
      const before = await group.rows();
      await group.database_proxy.cut();
      await Bun.sleep(DATABASE_OUTAGE_MS);
      expect(seated.filter(group.isAlive)).toHaveLength(seated.length);
      await group.database_proxy.heal();
      await Bun.sleep(LONGER_THAN_LOST_MS);
      await expectNothingLost(group, before, seated);
    },
    TEST_TIMEOUT_MS,
  );

  test.skipIf(!has_faketime)(
    'are all kept while the clock of one jumps an hour ahead, and that of another back',
    async () => {
      const folder = await makeDataDirectory();
      const clocks = [0, 1, 2].map((index) => join(folder, `clock-${index}`));
      await Promise.all(clocks.map((clock) => writeFile(clock, '+0')));
      const own_settings = clocks.map((clock) => ({
        LD_PRELOAD: FAKETIME,
        FAKETIME_TIMESTAMP_FILE: clock,
        FAKETIME_CACHE_DURATION: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      }));
      await using group = await openMachineGroup(3, { own_settings });
      const seated = await group.seatOnEach();
      const before = await group.rows();
      for (const [ahead, behind] of [
        [0, 1],
        [1, 0],
      ] as const) {
        await writeFile(clocks[ahead] ?? '', `+${HOUR_S}`);
        await writeFile(clocks[behind] ?? '', `-${HOUR_S}`);
        await waitFor(async () => {
          const [one, other] = await Promise.all([clockOf(group, ahead), clockOf(group, behind)]);
          return one - other > HOUR_S * 1_000;
        }, 'the clocks to jump');
        await Bun.sleep(LONGER_THAN_LOST_MS);
      }
      for (const clock of clocks) await writeFile(clock, '+0');
      await waitFor(
        async () => Math.abs((await clockOf(group, 0)) - (await clockOf(group, 1))) < 60_000,
        'the clocks to agree',
      );
      await expectNothingLost(group, before, seated);
    },
    TEST_TIMEOUT_MS,
  );

  test.skipIf(WITHOUT_NETWORK !== undefined)(
    'the third loses its network: the others go on, and it ends what was declared lost once it is back',
    async () => {
      await using network = await openNetwork();
      await using group = await openMachineGroup(3, { networks: [network] });
      const [, , third] = group.machines as [GroupMachine, GroupMachine, GroupMachine];
      await loseAndBringBack(group, third, { lose: () => network.cut(), bringBack: () => network.heal() });
    },
    TEST_TIMEOUT_MS,
  );
});

/** Returns the time of a machine in milliseconds, as its answers say. */
async function clockOf(group: MachineGroup, index: number): Promise<number> {
  const response = await fetch(`${group.machines[index]?.program.url}/health/live`);
  return Date.parse(response.headers.get('date') ?? '');
}

/** Checks that no machine was declared lost, that no game ended, and that finds get seats everywhere. */
async function expectNothingLost(
  group: MachineGroup,
  before: Awaited<ReturnType<MachineGroup['rows']>>,
  seated: Awaited<ReturnType<MachineGroup['seatOn']>>[],
): Promise<void> {
  const after = await group.rows();
  for (const [node_id, { holder }] of before) expect(after.get(node_id)).toMatchObject({ state: 'up', holder });
  for (const one of seated) {
    expect(await group.readEnd(one)).toEqual({ stop_reason: null, seated: 1 });
    expect(group.isAlive(one)).toBe(true);
  }
  for (const { program } of group.machines) {
    const game = await makeControlledGame(program);
    expect((await seatOf(find(program, game))).lobby_id).toBeString();
  }
  expect(await group.faults()).toEqual([]);
}

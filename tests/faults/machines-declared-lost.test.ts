import { afterAll, expect, test } from 'bun:test';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { find, makeControlledGame } from '../support/game-server.ts';
import { type GroupMachine, openMachineGroup } from '../support/machines/machine-group.ts';
import { openChance } from '../support/matchmaker/chance.ts';
import { waitFor } from '../support/wait.ts';

const MOMENTS = 200;
const LOST_AFTER_MS = 1_000;
/** A pause ends at most this long before or after the moment at which its machine is declared lost. */
const AROUND_MS = 150;
const CLIENTS = 4;
const FIND_WITHIN_MS = 3_000;
const WARM_LOBBIES = 3;
/** Characters of a process's log that explain why it did not come back. */
const OUTPUT_SHOWN = 4_000;
const TEST_TIMEOUT_MS = 1_200_000;
const seed = Number(process.env.MUSTER_TEST_SEED ?? crypto.getRandomValues(new Uint16Array(1))[0]);

afterAll(() => {
  if (!IS_FULL_LENGTH)
    console.log(
      'Not tried, because only a run at full length tries it: machines at the moment at which they are declared lost.',
    );
});

test.skipIf(!IS_FULL_LENGTH)(
  `three processes: a paused machine continues at the moment at which it would be declared lost, ${MOMENTS} times: it is kept, or declared lost once, and nothing has two owners`,
  async () => {
    console.log(`seed ${seed} (MUSTER_TEST_SEED)`);
    const chance = openChance(seed, 0);
    await using group = await openMachineGroup(3, {
      settings: { MUSTER_MACHINE_LOST_MS: String(LOST_AFTER_MS), MUSTER_LOG: 'error' },
    });
    const { machines } = group;
    const [first] = machines as [GroupMachine];
    const game = await makeControlledGame(first.program, {
      game_modes: { default: { max_players: 8, idle_lobbies: { min: WARM_LOBBIES, max: WARM_LOBBIES } } },
      max_players: 100_000,
    });

    let is_over = false;
    let seats = 0;
    const finding = Array.from({ length: CLIENTS }, async () => {
      while (!is_over) {
        const machine = chance.pick(machines);
        const answer = await find(machine.program, game, {}, AbortSignal.timeout(FIND_WITHIN_MS)).catch(
          () => undefined,
        );
        if (answer?.status === 200) seats += 1;
        await Bun.sleep(50);
      }
    });

    /** Pauses a machine until about the moment at which it is declared lost. Returns whether it was. */
    async function pause(machine: GroupMachine): Promise<boolean> {
      const { machine_id, program } = machine;
      const before = (await group.rows()).get(machine_id);
      process.kill(program.pid, 'SIGSTOP');
      await Bun.sleep(LOST_AFTER_MS - AROUND_MS + chance.below(2 * AROUND_MS));
      const stopped = (await group.rows()).get(machine_id);
      process.kill(program.pid, 'SIGCONT');
      const after = await waitFor(async () => {
        const row = (await group.rows()).get(machine_id);
        return row?.state === 'up' && row.beat > (stopped?.beat ?? 0) + 1 && row;
      }, 'the machine to write its heartbeat').catch(async (cause) => {
        const row = (await group.rows()).get(machine_id);
        throw new Error(`machine ${machine_id} was ${JSON.stringify(row)}:\n${program.output().slice(-OUTPUT_SHOWN)}`, {
          cause,
        });
      });
      return after.holder !== before?.holder;
    }

    let declared_lost = 0;
    for (let moment = 0; moment < MOMENTS; ) {
      // Two of three are declared lost by one, one of three by two.
      const paused = machines.toSpliced(chance.below(machines.length), 1).slice(0, 1 + (moment % 2));
      const outcomes = await Promise.all(paused.map(pause));
      declared_lost += outcomes.filter(Boolean).length;
      moment += paused.length;
      expect(await group.faults()).toEqual([]);
    }
    is_over = true;
    await Promise.all(finding);
    console.log(`${declared_lost} of ${MOMENTS} times declared lost; ${seats} seats meanwhile`);
    expect(declared_lost).toBeGreaterThan(0);
    expect(declared_lost).toBeLessThan(MOMENTS);
    expect(seats).toBeGreaterThan(0);
    // Nothing is left of what was declared lost, and nothing of what runs is missing.
    await waitFor(async () => {
      const [running, recorded] = [group.listOnDisk(), await group.listRecorded()];
      return running.toSorted().join() === recorded.toSorted().join();
    }, 'each machine to run what the database says');
    expect(await group.faults()).toEqual([]);
  },
  TEST_TIMEOUT_MS,
);

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { clusterSettings, inspectPod, listPods } from '../support/kubernetes/kubernetes.ts';
import { type Lab, reasonWithoutLab, startLab } from '../support/kubernetes/kubernetes-lab.ts';
import { findSeat, seeEachOther } from '../support/lobbies/players.ts';
import { enterRoom } from '../support/lobbies/room.ts';
import { type Newcomer, openNewcomer, readFirstGame } from '../support/newcomer.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

/** Time for a cluster to start on a busy machine, and to end. */
const LAB_TIMEOUT_MS = 10 * 60_000;
const TEST_TIMEOUT_MS = 600_000;
/** Lobbies of players who did not connect, because their pod started too late, end sooner than after two minutes. */
const SETTINGS = { MUSTER_DEMO: 'off', MUSTER_SEAT_TIMEOUT_MS: '20000' };
const NO_PODS_WITHIN_MS = 120_000;

const reason = reasonWithoutLab();
if (reason !== undefined) console.log(`Not tried, because ${reason}: the README's first game as pods of Kubernetes.`);

describe.skipIf(reason !== undefined)('readme: in a cluster of two nodes, with each game server as a pod', () => {
  const opened = new AsyncDisposableStack();
  let lab: Lab;
  let home: Home;
  let program: Program;
  let newcomer: Newcomer;
  beforeAll(async () => {
    lab = opened.use(await startLab());
    home = opened.use(await makeHome({ ...clusterSettings(lab), ...SETTINGS }));
    program = await home.start();
    newcomer = opened.use(await openNewcomer(home, program));
  }, LAB_TIMEOUT_MS);
  afterAll(() => opened.disposeAsync(), LAB_TIMEOUT_MS);

  test(
    'the commands of "Your first game" run as printed',
    async () => {
      const steps = await readFirstGame(newcomer);
      const { exit_code, output, errors } = await newcomer.run(steps.join('\n'));
      expect([exit_code, errors]).toEqual([0, expect.stringContaining('Wrote muster.yaml. Next: muster deploy')]);
      expect(errors.match(/a lobby of the version was ready after/g)).toHaveLength(2);
      // Its bots play for three seconds, in which a pod may not start on a busy machine.
      expect(output).toMatch(/^connected {2}\d/m);
      expect(output).toMatch(/^tanks prod: with a greeting → \S+$/m);
      await expectNoPods();
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'then two players share its room, and a third is in another one, on the other node',
    async () => {
      const game = { public_token: await runMuster('tokens create public') };
      const first = await enterRoom(await findSeat(program, game));
      const second = await enterRoom(await findSeat(program, game));
      const third = await enterRoom(await findSeat(program, game));
      expect(second.lobby_id).toBe(first.lobby_id);
      expect(third.lobby_id).not.toBe(first.lobby_id);
      await seeEachOther(first, second);
      const nodes = new Map<string, string>();
      for (const { id, tags } of JSON.parse(await runMuster('servers --json')).servers) {
        nodes.set(tags.lobby_id, (await inspectPod(lab, id))?.spec.nodeName ?? '');
      }
      expect([nodes.get(first.lobby_id), nodes.get(third.lobby_id)].toSorted()).toEqual(['node1', 'node2']);
      expect(new URL(`ws://${first.host}`).hostname).not.toBe(new URL(`ws://${third.host}`).hostname);
      for (const player of [first, second, third]) await player.close();
      await expectNoPods();
    },
    TEST_TIMEOUT_MS,
  );

  /** Waits until the pods of lobbies without players are removed. */
  async function expectNoPods(): Promise<void> {
    await waitFor(async () => (await listPods(lab)).length === 0, 'all pods to be removed', NO_PODS_WITHIN_MS);
  }

  /** Runs a command in the folder of the game. Returns what it prints. */
  async function runMuster(command: string): Promise<string> {
    const { exit_code, output, errors } = await newcomer.run(`cd ~/tanks && ${newcomer.programs}/muster ${command}`);
    expect([exit_code, errors]).toEqual([0, expect.any(String)]);
    return output.trim();
  }
});

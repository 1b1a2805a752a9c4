import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { nameOf } from '../../../../src/features/servers/runtimes/kubernetes/pod-manifest.ts';
import { type Database, openDatabase } from '../../../../src/platform/database/database.ts';
import { openExternalDatabase } from '../../../support/database/database.ts';
import { holdRows, type RowChange } from '../../../support/database/held-rows.ts';
import { makeGame, type TestGame } from '../../../support/game.ts';
import { readEnd } from '../../../support/kubernetes/cluster-rows.ts';
import { clusterSettings, listPods } from '../../../support/kubernetes/kubernetes.ts';
import type { Lab } from '../../../support/kubernetes/kubernetes-lab.ts';
import { type ApiProxy, type CallToHold, openApiProxy } from '../../../support/kubernetes/kubernetes-proxy.ts';
import { ASKED, COUNTING, type Ending, expectEachNumberOnce } from '../../../support/network/counting-server.ts';
import { type Home, makeHome, type Program } from '../../../support/program.ts';
import { serversOf, uploadShell } from '../../../support/servers.ts';
import { waitFor } from '../../../support/wait.ts';

/** Time for a pod and a service to start and to end on a busy machine. */
const KILL_TIMEOUT_MS = 180_000;
/** Longer than it takes to end. */
const AWAY_MS = 2_000;
const KILLED: Ending = { end: { exit_code: null, exit_signal: 'SIGKILL' }, last_lines: [] };
const NODES = ['node1', 'node2'];

/** A step at which the service is killed: a call of the API server, or a change of a row, that is held until then. */
type Step = { call: CallToHold } | { row: RowChange };

const call = (method: CallToHold['method'], is_done = false): Step => ({ call: { method, is_done } });
const row = (is: RowChange['is'], table: string, when: string): Step => ({ row: { is, table, when } });
const becomes = (column: string) => row('update', 'servers', `old.${column} is null and new.${column} is not null`);

const STEPS_OF_START: [name: string, step: Step][] = [
  ['it has claimed a server, which has no pod', call('POST')],
  ['the pod was made, and the answer is lost', call('POST', true)],
  ['the pod was made, and its row does not say so', becomes('process')],
  ['the pod runs, and its row does not say so', becomes('started_at')],
  ['output was read, and is not kept', row('insert', 'server_log_chunks', `new.stream = 'std_out'`)],
];
const STEPS_OF_END: [name: string, step: Step][] = [
  ['it is to end a server, and its row does not say so', becomes('destroyed_at')],
  ['the program has ended, and its row does not say so', becomes('ended_at')],
  ['the end is in the row, and the pod is there', call('DELETE')],
  ['the pod was deleted, and the answer is lost', call('DELETE', true)],
  ['the pod was deleted, and its finalizer is there', call('PATCH')],
  ['the finalizer was removed, and the answer is lost', call('PATCH', true)],
];
const STEPS_OF_PENDING_END: [name: string, step: Step][] = [
  ['one is to be ended', call('DELETE')],
  ['one was deleted, and the answer is lost', call('DELETE', true)],
];

/** Describes what holds if the service is killed between two steps of a pod. */
export function describeKills(lab: () => Lab): void {
  describe('the service is killed when', () => {
    const opened = new AsyncDisposableStack();
    let proxy: ApiProxy;
    let database: Database;
    let home: Home;
    let program: Program;
    let game: TestGame;
    let build: string;
    beforeAll(async () => {
      const { url } = opened.use(await openExternalDatabase());
      database = opened.use(openDatabase({ url }, 2));
      proxy = opened.use(await openApiProxy(lab()));
      const settings = { ...clusterSettings(lab()), MUSTER_KUBERNETES: proxy.kubeconfig };
      home = opened.use(await makeHome({ ...settings, DATABASE_URL: url, MUSTER_DEMO: 'off' }));
      program = await home.start();
      game = await makeGame(program.api, program.administrator_token);
      build = await uploadShell(program.api, game, COUNTING);
    }, KILL_TIMEOUT_MS);
    afterAll(() => opened.disposeAsync(), KILL_TIMEOUT_MS);

    /** Begins some work, and kills the service once the work reaches a step. */
    async function killDuring(step: Step, begin: () => Promise<unknown>): Promise<void> {
      await using held = 'row' in step ? await holdRows(database, step.row) : undefined;
      const reached = 'call' in step ? proxy.hold(step.call) : held?.held;
      // The work may wait for what is held.
      const begun = begin().catch(() => {});
      await reached;
      await program.stop('SIGKILL');
      await begun;
    }

    /** Begins some work, kills the service once the work reaches a step, and starts the service again. */
    async function restartDuring(step: Step, begin: () => Promise<unknown>): Promise<void> {
      await killDuring(step, begin);
      program = await home.start();
    }

    async function create(): Promise<string> {
      const { bodyOf, create: send } = serversOf(program, game);
      return (await send(await bodyOf(build))).body.server.id;
    }

    async function newestServer(): Promise<string> {
      const [newest] = await database.queries.execute<{ server_id: string }>(
        sql`select server_id from servers order by created_at desc limit 1`,
      );
      return newest?.server_id ?? '';
    }

    const waitForEnd = (server_id: string) => waitFor(() => readEnd(database, server_id), 'the end of the server');

    const hasWritten = (server_id: string) => serversOf(program, game).waitForLines(server_id, 5);

    /** Checks that a server had one pod, which is gone, and all of its output once. */
    async function expectOneRun(server_id: string, ending = ASKED): Promise<void> {
      expect<object>(await waitForEnd(server_id)).toEqual({ ...ending.end, failure: null, has_lost_machine: false });
      const { allLinesOf } = serversOf(program, game);
      const [lines, errors] = [await allLinesOf(server_id), await allLinesOf(server_id, 'std_err')];
      expectEachNumberOnce({ lines, errors }, ending);
      await expectNoPod(server_id);
    }

    async function expectNoPod(server_id: string): Promise<void> {
      expect(proxy.createdPods(nameOf(server_id))).toHaveLength(1);
      await waitFor(async () => !(await listPods(lab())).includes(nameOf(server_id)), 'its pod to be removed');
    }

    test.each(STEPS_OF_START)(
      '%s: it starts once, and nothing of it is lost',
      async (_, step) => {
        await restartDuring(step, create);
        const server_id = await newestServer();
        await hasWritten(server_id);
        await serversOf(program, game).destroy(server_id);
        await expectOneRun(server_id);
      },
      KILL_TIMEOUT_MS,
    );

    test.each(STEPS_OF_END)(
      '%s: it ends once, and nothing of it is lost',
      async (_, step) => {
        const server_id = await create();
        await hasWritten(server_id);
        await restartDuring(step, () => serversOf(program, game).destroy(server_id));
        await serversOf(program, game).destroy(server_id);
        await expectOneRun(server_id);
      },
      KILL_TIMEOUT_MS,
    );

    test(
      'the program was asked to end, which it does while the service is stopped: nothing of it is lost',
      async () => {
        const server_id = await create();
        await hasWritten(server_id);
        await serversOf(program, game).destroy(server_id);
        await waitFor(
          async () => (await serversOf(program, game).linesOf(server_id)).at(-1) === 'asked',
          'it to be asked',
        );
        await program.stop('SIGKILL');
        await Bun.sleep(AWAY_MS);
        program = await home.start();
        await expectOneRun(server_id);
      },
      KILL_TIMEOUT_MS,
    );

    test(
      'the program was killed, and its row does not say so: it ends once, as killed',
      async () => {
        const server_id = await create();
        await hasWritten(server_id);
        await restartDuring(becomes('ended_at'), () =>
          serversOf(program, game).destroy(server_id, '?override_kill_timeout=0'),
        );
        await expectOneRun(server_id, KILLED);
      },
      KILL_TIMEOUT_MS,
    );

    describe('no node takes a pod, and', () => {
      beforeAll(() => lab().run('kubectl', 'cordon', ...NODES));
      afterAll(() => lab().run('kubectl', 'uncordon', ...NODES));

      test.each(STEPS_OF_PENDING_END)(
        '%s: it is removed',
        async (_, step) => {
          const server_id = await create();
          await serversOf(program, game).waitForLines(server_id, 1, 'std_err');
          await restartDuring(step, () => serversOf(program, game).destroy(server_id));
          expect(await waitForEnd(server_id)).toMatchObject({ exit_code: null, failure: null });
          await expectNoPod(server_id);
        },
        KILL_TIMEOUT_MS,
      );
    });
  });
}

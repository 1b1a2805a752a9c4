import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { $ } from 'bun';
import { sql } from 'drizzle-orm';
import { NO_HOLDER } from '../../../../src/features/machines/tables.ts';
import { nameOf } from '../../../../src/features/servers/runtimes/kubernetes/pod-manifest.ts';
import { type Database, openDatabase } from '../../../../src/platform/database/database.ts';
import { openExternalDatabase } from '../../../support/database/database.ts';
import { makeGame, type TestGame } from '../../../support/game.ts';
import { readEnd, readHolder } from '../../../support/kubernetes/cluster-rows.ts';
import { clusterSettings, listPods } from '../../../support/kubernetes/kubernetes.ts';
import type { Lab } from '../../../support/kubernetes/kubernetes-lab.ts';
import { type ApiProxy, openApiProxy } from '../../../support/kubernetes/kubernetes-proxy.ts';
import { openLoadBalancer } from '../../../support/machines/load-balancer.ts';
import { machineIdOf } from '../../../support/machines/machines.ts';
import { ASKED, COUNTING, expectEachNumberOnce } from '../../../support/network/counting-server.ts';
import { findFreePort } from '../../../support/network/test-ports.ts';
import { type Home, makeHome, type Program } from '../../../support/program.ts';
import { serversOf, uploadShell } from '../../../support/servers.ts';
import { waitFor } from '../../../support/wait.ts';

const SHARING_TIMEOUT_MS = 300_000;
/** Time for a lease to be taken over and pods to find its holder, on a busy machine. */
const TAKEN_OVER_WITHIN_MS = 120_000;
const PROCESSES = 3;

interface Process {
  machine_id: string;
  home: Home;
  program: Program;
  proxy: ApiProxy;
}

/** Describes processes that share a cluster: one at a time holds it, and another takes over when that one fails. */
export function describeSharing(lab: () => Lab): void {
  describe('processes that share a cluster', () => {
    const opened = new AsyncDisposableStack();
    const processes: Process[] = [];
    let database: Database;
    let game: TestGame;
    let build: string;

    beforeAll(async () => {
      const { url } = opened.use(await openExternalDatabase());
      database = opened.use(openDatabase({ url }, 2));
      const { host } = lab();
      const addresses = Array.from({ length: PROCESSES }, (_, index) => host.replace(/\d+$/, String(240 + index)));
      for (const address of addresses) {
        await $`ip address add ${address}/32 dev lo`.quiet();
        opened.defer(async () => void (await $`ip address del ${address}/32 dev lo`.quiet()));
      }
      const [port, pod_port] = [findFreePort(), findFreePort()];
      for (const each of [port, pod_port]) opened.use(await openLoadBalancer(host, each, addresses));
      for (const address of addresses) {
        const proxy = opened.use(await openApiProxy(lab()));
        const settings = {
          ...clusterSettings(lab()),
          MUSTER_HOST: address,
          MUSTER_PORT: String(port),
          MUSTER_KUBERNETES: proxy.kubeconfig,
          MUSTER_KUBERNETES_PORT: String(pod_port),
          MUSTER_PUBLIC_URL: `http://${address}:${port}`,
          DATABASE_URL: url,
          MUSTER_DEMO: 'off',
          MUSTER_LOG: 'info',
        };
        const network = { address, outer_address: host, enter: (command: string[]) => command, ...NEVER_CUT };
        const home = opened.use(await makeHome(settings, { network }));
        // All processes read the same uploads.
        const [first] = processes;
        const own = join(home.data_directory, 'objects');
        if (first) await symlink(join(first.home.data_directory, 'objects'), own);
        const program = await home.start();
        processes.push({ home, program, proxy, machine_id: await machineIdOf(home.data_directory) });
      }
      await watchRows(database);
      const [{ program }] = processes as [Process];
      game = await makeGame(program.api, program.administrator_token);
      build = await uploadShell(program.api, game, COUNTING);
    }, SHARING_TIMEOUT_MS);
    afterAll(() => opened.disposeAsync(), SHARING_TIMEOUT_MS);

    /** Returns the processes, the holder of the cluster first. */
    async function holderFirst(): Promise<[Process, Process, Process]> {
      const holder_id = await waitFor(() => readHolder(database), 'a process to hold the cluster');
      const holder = processes.find(({ machine_id }) => machine_id === holder_id);
      if (!holder) throw new Error('the holder of the cluster is unknown');
      return [holder, ...processes.filter((one) => one !== holder)] as [Process, Process, Process];
    }

    async function waitForOtherHolder({ machine_id }: Process): Promise<void> {
      const hasOther = async () => ![machine_id, undefined].includes(await readHolder(database));
      await waitFor(hasOther, 'another process to take over', TAKEN_OVER_WITHIN_MS);
    }

    /** Creates a server through a process, and waits until it has started and written some lines. */
    async function createCounting({ program }: Process): Promise<string> {
      const { bodyOf, create, waitForStart } = serversOf(program, game);
      const server_id = (await create(await bodyOf(build))).body.server.id;
      // It writes before its node says that it runs. Until then it would be killed, not stopped.
      await waitForStart(server_id);
      await waitForMoreLines(program, server_id);
      return server_id;
    }

    /** Waits until the log of a server has more lines than now. */
    async function waitForMoreLines(program: Program, server_id: string): Promise<void> {
      const { linesOf } = serversOf(program, game);
      const before = (await linesOf(server_id)).at(-1);
      const hasMore = async () => (await linesOf(server_id)).at(-1) !== before;
      await waitFor(hasMore, 'its output to go on', TAKEN_OVER_WITHIN_MS);
    }

    /** Ends servers through a process, and checks that each had one pod, which is gone, and all of its output once. */
    async function expectOneRun({ program }: Process, server_ids: string[]): Promise<void> {
      const { destroy, linesOf } = serversOf(program, game);
      for (const server_id of server_ids) await destroy(server_id);
      for (const server_id of server_ids) {
        const end = await waitFor(() => readEnd(database, server_id), 'its end', TAKEN_OVER_WITHIN_MS);
        expect<object>(end).toEqual({ ...ASKED.end, failure: null, has_lost_machine: false });
        const [lines, errors] = [await linesOfAll(server_id, 'std_out'), await linesOfAll(server_id, 'std_err')];
        expectEachNumberOnce({ lines, errors });
        expect(processes.flatMap(({ proxy }) => proxy.createdPods(nameOf(server_id)))).toHaveLength(1);
        const isGone = async () => !(await listPods(lab())).includes(nameOf(server_id));
        await waitFor(isGone, 'its pod to be removed', TAKEN_OVER_WITHIN_MS);
      }
      expect(await linesOf(server_ids[0] ?? '')).not.toEqual([]);
      expect(await readFaults(database)).toEqual([]);
    }

    /** Returns all lines of a log, of which the API gives the last ones. */
    async function linesOfAll(server_id: string, stream: string): Promise<string[]> {
      const rows = await database.queries.execute<{ content: Buffer }>(sql`
        select content from server_log_chunks where server_id = ${server_id} and stream = ${stream} order by first_line`);
      return Buffer.concat(rows.map(({ content }) => content))
        .toString()
        .trimEnd()
        .split('\n');
    }

    test(
      'have one machine, which starts servers that any of them creates',
      async () => {
        const [, other, third] = await holderFirst();
        const server_ids = [await createCounting(other), await createCounting(third)];
        const rows = await database.queries.execute<{ node_id: string }>(sql`
          select distinct node_id from servers where ended_at is null`);
        expect(processes.map(({ machine_id }) => machine_id)).not.toContain(rows[0]?.node_id ?? '');
        expect(rows).toHaveLength(1);
        await expectOneRun(other, server_ids);
      },
      SHARING_TIMEOUT_MS,
    );

    test(
      'go on when the holder is killed: another takes its pods, and starts and ends servers',
      async () => {
        const [holder, other] = await holderFirst();
        const server_ids = [await createCounting(holder), await createCounting(other)];
        await holder.program.stop('SIGKILL');
        await waitForOtherHolder(holder);
        for (const server_id of server_ids) await waitForMoreLines(other.program, server_id);
        const later = await createCounting(other);
        await expectOneRun(other, [...server_ids, later]);
        holder.program = await holder.home.start();
      },
      SHARING_TIMEOUT_MS,
    );

    test(
      'go on when the holder is paused, and leave nothing to do for it when it wakes',
      async () => {
        const [holder, other] = await holderFirst();
        const before = await createCounting(other);
        process.kill(holder.program.pid, 'SIGSTOP');
        try {
          await waitForOtherHolder(holder);
          await waitForMoreLines(other.program, before);
        } finally {
          process.kill(holder.program.pid, 'SIGCONT');
        }
        const later = await createCounting(other);
        const hasLostLease = () => holder.program.output().includes('cluster_lost');
        await waitFor(hasLostLease, 'the earlier holder to notice', TAKEN_OVER_WITHIN_MS);
        await expectOneRun(other, [before, later]);
      },
      SHARING_TIMEOUT_MS,
    );

    test(
      'go on when the holder does not reach the API server: another that does takes its pods',
      async () => {
        const [holder, other] = await holderFirst();
        const before = await createCounting(holder);
        holder.proxy.cut();
        try {
          await waitForOtherHolder(holder);
          const later = await createCounting(holder);
          await waitForMoreLines(other.program, before);
          await expectOneRun(other, [before, later]);
        } finally {
          holder.proxy.heal();
        }
        expect(holder.program.output()).not.toContain('machine_lost');
      },
      SHARING_TIMEOUT_MS,
    );

    test(
      'hand the pods on when they are restarted one after the other, without waiting for a lease to end',
      async () => {
        const [first] = await holderFirst();
        const server_ids = [await createCounting(first)];
        for (const one of processes) {
          await database.queries.execute(sql`delete from holders_of_test`);
          const was_holder = (await readHolder(database)) === one.machine_id;
          await one.program.stop('SIGTERM');
          if (was_holder) {
            await waitForOtherHolder(one);
            const [given] = await database.queries.execute<{ holder: string }>(sql`select holder from holders_of_test`);
            expect(given?.holder).toBe(NO_HOLDER);
          }
          const [other] = processes.filter((each) => each !== one) as [Process];
          await waitForMoreLines(other.program, server_ids[0] ?? '');
          server_ids.push(await createCounting(other));
          one.program = await one.home.start();
        }
        await expectOneRun(first, server_ids);
      },
      SHARING_TIMEOUT_MS,
    );

    // The last one: no process is left.
    test(
      'end the servers by ctrl-C in the last of them only',
      async () => {
        const [holder, other, last] = await holderFirst();
        const server_id = await createCounting(last);
        await holder.program.stop('SIGINT');
        await other.program.stop('SIGINT');
        await waitForMoreLines(last.program, server_id);
        expect(await readEnd(database, server_id)).toBeUndefined();
        await last.program.stop('SIGINT');
        expect<object>(await readEnd(database, server_id)).toMatchObject({ exit_code: 7, has_lost_machine: false });
        expect(await readFaults(database)).toEqual([]);
      },
      SHARING_TIMEOUT_MS,
    );
  });
}

const NEVER_CUT = { cut: async () => {}, heal: async () => {}, [Symbol.asyncDispose]: async () => {} };

/** Lets PostgreSQL record the holders of the cluster, and changes of servers that no process may make. */
async function watchRows({ queries }: Database): Promise<void> {
  const statements = [
    'create table holders_of_test (id bigserial primary key, holder uuid not null)',
    'create table faults_of_test (fault text not null)',
    `create function note_holder() returns trigger language plpgsql as $$ begin
      insert into holders_of_test (holder) values (new.holder); return new; end $$`,
    `create trigger note_holder after update on machines for each row
      when (old.holder <> new.holder and new.cluster_id is null) execute function note_holder()`,
    `create function note_fault() returns trigger language plpgsql as $$ begin
      insert into faults_of_test values (old.server_id || ' ended twice, or went to another machine'); return new; end $$`,
    `create trigger note_fault after update on servers for each row
      when (old.node_id <> new.node_id or old.ended_at is not null and old.ended_at is distinct from new.ended_at)
      execute function note_fault()`,
  ];
  for (const statement of statements) await queries.execute(sql.raw(statement));
}

async function readFaults({ queries }: Database): Promise<string[]> {
  return (await queries.execute<{ fault: string }>(sql`select fault from faults_of_test`)).map(({ fault }) => fault);
}

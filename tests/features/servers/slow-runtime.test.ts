import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { destroyServer } from '../../../src/features/servers/destroy-store.ts';
import { createLogs, type Logs } from '../../../src/features/servers/logs/logs.ts';
import { startReconciling } from '../../../src/features/servers/reconcile.ts';
import { insertServer, selectServerById } from '../../../src/features/servers/store.ts';
import type { ServerRow } from '../../../src/features/servers/tables.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { openFeed } from '../../../src/platform/watch/feed.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { LONE_MACHINE } from '../../support/machines/lone-machine.ts';
import { claimTestPorts } from '../../support/network/test-ports.ts';
import { findProcessesOf, findServerProcesses } from '../../support/processes.ts';
import { HOST, openTestRuntime, orderOf, PROCESS_RUNTIMES, type TestRuntime } from '../../support/runtimes/runtimes.ts';
import { createSlowRuntime, type SlowRuntime } from '../../support/runtimes/slow-runtime.ts';
import { waitingServer } from '../../support/runtimes/waiting-server.ts';
import { textsOf } from '../../support/server-logs.ts';
import { openServiceTokens } from '../../support/service-tokens.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const NODE = { node_id: crypto.randomUUID(), datacenter_id: crypto.randomUUID(), api_url: 'http://127.0.0.1:8080' };
const MINUTE_MS = 60_000;

const muster = shareService();

describe('a machine whose runtime answers late', () => {
  const opened = new AsyncDisposableStack();
  const emitted: ServiceEvent[] = [];
  let database: Database;
  let game: TestGame;
  let build_id: string;
  let machine: TestRuntime;
  let runtime: SlowRuntime;
  let logs: Logs;
  beforeAll(async () => {
    database = opened.use(openDatabase(muster.database_address, 4));
    game = await makeGame(muster.api, muster.administrator_token);
    build_id = await uploadScript(muster.api, game, '');
    machine = opened.use(await openTestRuntime(PROCESS_RUNTIMES[0]));
    runtime = createSlowRuntime(machine.runtime);
    const { clock, database_address } = muster;
    logs = createLogs({ database, clock });
    const events = { emit: (event: ServiceEvent) => void emitted.push(event) };
    const feed = opened.use(await openFeed(database, events));
    const { build } = await orderOf(machine.directory, `trap 'exit 4' TERM; echo ready; while :; do sleep 0.02; done`);
    const stop = new AbortController();
    const { stopped } = startReconciling(
      {
        database,
        clock,
        events,
        feed,
        runtime,
        takes_servers: true,
        logs,
        builds: { kindOf: async () => build.kind, ensureUnpacked: async () => build, isUnpacked: async () => true },
        tokens: await openServiceTokens({ database_address, clock }),
        developerGroupsOf: async () => new Map(),
        machine: {
          ...NODE,
          server_ports: opened.use(await claimTestPorts()).range,
          servers_max: 100,
          servers_per_group_max: 100,
          resources_max: undefined,
          relayed: new Set(),
        },
        relays: { openOnly: async () => new Set() },
        machines: LONE_MACHINE,
      },
      stop.signal,
    );
    opened.defer(async () => {
      stop.abort();
      await stopped;
    });
  }, 300_000);
  afterAll(() => opened.disposeAsync(), 300_000);

  async function create(): Promise<string> {
    const { game_id, namespace_id } = game;
    const row: ServerRow = {
      ...waitingServer({ game_id, namespace_id, build_id, datacenter_id: NODE.datacenter_id }),
      ports: { game: { protocol: 'udp', routing: 'game_guard' } },
      kill_timeout_ms: MINUTE_MS,
      created_at: muster.clock.now(),
    };
    await database.transact((tx) => insertServer(tx, row));
    return row.server_id;
  }

  const read = async (server_id: string) => {
    const row = await selectServerById(database.queries, server_id);
    if (!row) throw new Error('the server is in the database');
    return row;
  };
  const waitForTime = (server_id: string, column: 'started_at' | 'ended_at') =>
    waitFor(
      async () => {
        const row = await read(server_id);
        return row[column] !== null && row;
      },
      column,
      300_000,
    );
  const linesOf = async (server_id: string, stream: 'std_out' | 'std_err' = 'std_err') =>
    textsOf((await logs.lastLines({ server_id, stream })).lines);
  const eventsOf = (server_id: string) =>
    emitted.flatMap((event) => ('server_id' in event && event.server_id === server_id ? event.event : []));
  const destroy = (server_id: string) =>
    database.transact((tx) =>
      destroyServer(tx, game, server_id, { now: muster.clock.now(), override_kill_timeout_ms: undefined }),
    );

  test('records a server when it runs, with its address, and writes to its log why it waits', async () => {
    const server_id = await create();
    const row = await waitForTime(server_id, 'started_at');
    expect(row.identity).toEqual({ engine: 'slow', name: `server-${server_id}` });
    const { public_port } = row.ports.game ?? {};
    expect(row.ports.game).toMatchObject({ public_hostname: HOST, internal_port: public_port ?? 0 });
    expect(await linesOf(server_id)).toEqual([
      '[muster] this server does not run yet: the image is being fetched',
      '[muster] this server does not run yet: the image is being unpacked',
    ]);
    await waitFor(() => eventsOf(server_id).length > 0, 'the event of its start');
    expect(eventsOf(server_id)).toEqual(['server_started']);

    await waitFor(async () => (await linesOf(server_id, 'std_out')).includes('ready'), 'it to expect signals');
    await destroy(server_id);
    expect(await waitForTime(server_id, 'ended_at')).toMatchObject({ exit_code: 4, exit_signal: null, failure: null });
    await waitFor(() => findProcessesOf(server_id).length === 0, 'its processes to be gone');
  }, 300_000);

  test('knows the address of a server before its start is recorded, if the runtime has one host', async () => {
    runtime.is_stuck = true;
    Object.assign(runtime, { host: 'games.example' });
    const server_id = await create();
    await waitFor(async () => (await read(server_id)).identity !== null, 'it to be accepted');
    const placed = { started_at: null, ports: { game: { public_hostname: 'games.example' } } };
    expect(await read(server_id)).toMatchObject(placed);
    Object.assign(runtime, { host: undefined });
    await destroy(server_id);
    await waitForTime(server_id, 'ended_at');
    runtime.is_stuck = false;
  }, 300_000);

  test('ends a server that is pending without having run it', async () => {
    runtime.is_stuck = true;
    const server_id = await create();
    await waitFor(async () => (await read(server_id)).identity !== null, 'it to be accepted');
    await destroy(server_id);
    const ended = { started_at: null, exit_code: null, exit_signal: null, failure: null };
    expect(await waitForTime(server_id, 'ended_at')).toMatchObject(ended);
    runtime.is_stuck = false;
    await waitFor(() => eventsOf(server_id).length > 0, 'the event of its end');
    expect(eventsOf(server_id)).toEqual(['server_ended']);
  }, 300_000);

  test('waits a minute for an unreachable server, then gives it up', async () => {
    const [lost, found] = [await create(), await create()];
    await Promise.all([waitForTime(lost, 'started_at'), waitForTime(found, 'started_at')]);
    for (const server_id of [lost, found]) runtime.cutOff(server_id, MINUTE_MS - 1);
    const observation_count = runtime.observation_count;
    await waitFor(() => runtime.observation_count > observation_count + 4, 'several observations');
    expect((await read(lost)).ended_at).toBeNull();
    runtime.reconnect(found);
    runtime.cutOff(lost, MINUTE_MS);
    const failure = 'the process was lost: the machine restarted, or another program ended it';
    expect(await waitForTime(lost, 'ended_at')).toMatchObject({ exit_code: null, failure });
    expect(findServerProcesses(lost)).toEqual([]);
    expect((await read(found)).ended_at).toBeNull();
    await destroy(found);
    expect(await waitForTime(found, 'ended_at')).toMatchObject({ exit_code: 4, failure: null });
  }, 300_000);
});

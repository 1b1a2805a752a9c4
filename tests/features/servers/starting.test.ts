import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { createLogs } from '../../../src/features/servers/logs/logs.ts';
import { createStarting } from '../../../src/features/servers/starting.ts';
import { insertServer, selectOnMachine } from '../../../src/features/servers/store.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { createEndedRuntime, idsOf, openSimulatedMachine } from '../../support/matchmaker/simulated-machine.ts';
import { openTestRuntime, PROCESS_RUNTIMES, type TestRuntime } from '../../support/runtimes/runtimes.ts';
import { waitingServer } from '../../support/runtimes/waiting-server.ts';
import { textsOf } from '../../support/server-logs.ts';
import { openServiceTokens } from '../../support/service-tokens.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();
const opened = new AsyncDisposableStack();
let database: Database;
let game: TestGame;
let build_id: string;
let machine: TestRuntime;
beforeAll(async () => {
  database = opened.use(openDatabase(muster.database_address, 2));
  game = await makeGame(muster.api, muster.administrator_token);
  build_id = await uploadScript(muster.api, game, '');
  machine = opened.use(await openTestRuntime(PROCESS_RUNTIMES[0]));
});
afterAll(() => opened.disposeAsync());

/** A machine whose builds cannot be read, with a server that waits for its start there. */
async function openMachine(failure: Error) {
  const node_id = crypto.randomUUID();
  const { game_id, namespace_id } = game;
  await database.transact((tx) =>
    insertServer(tx, {
      ...waitingServer({ game_id, namespace_id, build_id, datacenter_id: crypto.randomUUID() }),
      node_id,
      kill_timeout_ms: 0,
      created_at: muster.clock.now(),
    }),
  );
  const read = async () => {
    const [server] = await selectOnMachine(database.queries, node_id);
    return server;
  };
  const server = await read();
  if (!server) throw new Error('the server waits');
  const { clock, database_address } = muster;
  const starting = createStarting({
    database,
    clock,
    events: { emit() {} },
    runtime: machine.runtime,
    logs: createLogs({ database, clock }),
    tokens: await openServiceTokens({ database_address, clock }),
    builds: { kindOf: () => Promise.reject(failure), ensureUnpacked: () => Promise.reject(failure) },
    machine: { api_url: 'http://127.0.0.1:8080' },
  });
  return { start: () => starting.start(server), read };
}

describe('starting: a server whose build cannot be read', () => {
  const TEMPORARY = [
    ['the database is busy', new ServiceError('DATABASE_BUSY', {})],
    ['the disk is full', Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })],
    ['the machine has no descriptors left', Object.assign(new Error('too many open files'), { code: 'EMFILE' })],
  ] as const;
  test.each(TEMPORARY)('is tried again if %s', async (_, failure) => {
    const { start, read } = await openMachine(failure);
    await expect(start()).rejects.toBe(failure);
    expect(await read()).toMatchObject({ failure: null, destroyed_at: null, started_at: null });
  });

  test('fails with the reason if it never can be', async () => {
    const { start, read } = await openMachine(new ServiceError('BUILDS_BUILD_NOT_FOUND', {}));
    await start();
    expect((await read())?.failure).toBeString();
  });
});

test('starting: a start that fails for now is tried again after a pause, and its reason is reported once', async () => {
  const failure = Object.assign(new Error('fork failed in /var/lib/muster'), { code: 'EAGAIN' });
  let starts = 0;
  const runtime = createEndedRuntime({
    observe: async (servers) => new Map(idsOf(servers).map((server_id) => [server_id, { is: 'absent' }])),
    async start() {
      starts += 1;
      throw failure;
    },
  });
  await using simulated = await openSimulatedMachine(muster, game, runtime);
  const server_id = await simulated.add();
  await waitFor(() => starts >= 2, 'the second start');
  expect(simulated.events.filter(({ event }) => event === 'server_step_failed')).toEqual([
    { event: 'server_step_failed', server_id, step: 'start', cause: failure },
  ]);
  expect(textsOf((await simulated.logs.lastLines({ server_id, stream: 'std_err' })).lines)).toEqual([
    '[muster] this server does not run yet: the machine could not start the server (EAGAIN): tell the operator of the service',
  ]);
});

test('starting: a server that runs gets no line that it does not, although its first lines cannot be written', async () => {
  const started = { is: 'running', identity: {}, host: '127.0.0.1' } as const;
  let has_started = false;
  const runtime = createEndedRuntime({
    observe: async (servers) => new Map(idsOf(servers).map((id) => [id, has_started ? started : { is: 'absent' }])),
    async start() {
      has_started = true;
      return started;
    },
  });
  await database.queries.execute(
    sql.raw(`create function refuse_hint() returns trigger language plpgsql as $$ begin
      if convert_from(new.content, 'UTF8') like '%listen on%' then raise 'refused'; end if; return new;
    end $$`),
  );
  await database.queries.execute(
    sql.raw(
      'create trigger refuse_hint before insert on server_log_chunks for each row execute function refuse_hint()',
    ),
  );
  await using simulated = await openSimulatedMachine(muster, game, runtime);
  const port = { protocol: 'udp', routing: 'host', wanted_port: 7_777, internal_port: 26_000 } as const;
  const server_id = await simulated.add({ ports: { game: { ...port, public_port: 26_000 } } });
  const failed = await simulated.waitForEvent('server_step_failed', server_id);
  await database.queries.execute(sql.raw('drop trigger refuse_hint on server_log_chunks'));
  expect(failed).toMatchObject({ step: 'report' });
  // Another server has its steps after that.
  await simulated.waitForEvent('server_adopted', await simulated.add());
  expect(textsOf((await simulated.logs.lastLines({ server_id, stream: 'std_err' })).lines)).toEqual([]);
});

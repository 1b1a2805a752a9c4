import { expect, test } from 'bun:test';
import type { Observation } from '../../../src/features/servers/runtimes/runtime.ts';
import { assignedPortsOf } from '../../../src/features/servers/server-port-rules.ts';
import { selectServerById } from '../../../src/features/servers/store.ts';
import type { ServerPort, ServerRow } from '../../../src/features/servers/tables.ts';
import { makeGame } from '../../support/game.ts';
import { createEndedRuntime, idsOf, openSimulatedMachine } from '../../support/matchmaker/simulated-machine.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const ABSENT: Observation = { is: 'absent' };
const RUNNING = { is: 'running', identity: { pid: 1 }, host: '127.0.0.1' } as const;
const ONE_PORT: Record<string, ServerPort> = { game: { protocol: 'tcp', routing: 'host' } };
const rangeOf = (min: number, max: number): Record<string, ServerPort> => ({
  range: { protocol: 'tcp', routing: 'host', port_range: { min, max } },
});

const muster = shareService();

/** Opens a machine whose servers run as soon as they are started. It gives the ports from 26000 to 26199. */
async function openMachine() {
  const started = new Set<string>();
  const runtime = createEndedRuntime({
    kinds: ['javascript'],
    async start({ server_id }) {
      started.add(server_id);
      return RUNNING;
    },
    observe: async (servers) => new Map(idsOf(servers).map((id) => [id, started.has(id) ? RUNNING : ABSENT])),
  });
  const place = await makeGame(muster.api, muster.administrator_token);
  const machine = await openSimulatedMachine(muster, place, runtime);
  const add = (ports: Record<string, ServerPort>) => machine.add({ node_id: null, ports });
  async function readStarted(server_id: string): Promise<ServerRow | undefined> {
    const row = await selectServerById(muster.database.queries, server_id);
    return row?.started_at ? row : undefined;
  }
  const run = async (ports: Record<string, ServerPort>): Promise<ServerRow> => {
    const server_id = await add(ports);
    return await waitFor(() => readStarted(server_id), 'the server to run');
  };
  return { machine, add, run, readStarted, [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose]() };
}

test('port ranges: no other server gets a port of the range of a running server', async () => {
  await using opened = await openMachine();
  await opened.run(rangeOf(26_000, 26_098));
  const others = await Promise.all(Array.from({ length: 12 }, () => opened.run(ONE_PORT)));
  const ports = others.flatMap((server) => assignedPortsOf(server.ports));
  expect(ports).toHaveLength(12);
  expect(Math.min(...ports)).toBeGreaterThan(26_098);
}, 300_000);

test('port ranges: servers may have the same range', async () => {
  await using opened = await openMachine();
  await opened.run(rangeOf(26_000, 26_010));
  await opened.run(rangeOf(26_005, 26_020));
}, 300_000);

test('port ranges: a server waits whose range has the port of another one, and others do not wait for it', async () => {
  await using opened = await openMachine();
  const [port = 0] = assignedPortsOf((await opened.run(ONE_PORT)).ports);
  const waiting = await opened.add(rangeOf(port, port));
  expect(await opened.machine.waitForEvent('server_waits', waiting)).toMatchObject({ reason: 'no_ports' });
  await opened.run(ONE_PORT);
  expect(await opened.readStarted(waiting)).toBeUndefined();
}, 300_000);

test('port ranges: a server waits whose range has more than 100 ports that the machine gives, and not of others', async () => {
  await using opened = await openMachine();
  const waiting = await opened.add(rangeOf(26_000, 26_100));
  expect(await opened.machine.waitForEvent('server_waits', waiting)).toMatchObject({ reason: 'no_ports' });
  await opened.run(rangeOf(26_100, 31_999));
  expect(await opened.readStarted(waiting)).toBeUndefined();
}, 300_000);

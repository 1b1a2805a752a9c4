import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { makeGame, type TestGame } from '../../support/game.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { findProcessesOf, findServerProcesses } from '../../support/processes.ts';
import { serversOf, startedBy, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';

const ROOM = 3;

test('a machine without room for a server leaves it to another of its datacenter', async () => {
  // It has one port, and a tenth of its resources.
  const port = findFreePort();
  const settings = { MUSTER_SERVER_PORTS: `${port}-${port}`, MUSTER_RESOURCES_PERCENT: '10' };
  await using full = await openTestService(settings);
  await using other = await openTestService({}, { database_of: full });
  const game = await makeGame(full.api, full.administrator_token);
  const servers = serversOf(full, game);
  const build = await uploadShell(full.api, game, `trap 'exit 0' TERM; while :; do sleep 0.02; done`);
  const folderOf = ({ config }: TestService) => join(config.data_directory, 'builds', build);
  await cp(folderOf(full), folderOf(other), { recursive: true });
  const ports = { network: { ports: { game: { protocol: 'udp' }, query: { protocol: 'udp' } } } };
  const create = async (more: object): Promise<string> =>
    (await servers.create(await servers.bodyOf(build, more))).body.server.id;
  const ids = [
    ...(await Promise.all([1, 2, 3].map(() => create(ports)))),
    ...(await Promise.all([1, 2, 3].map(() => create({ resources: { cpu: 4_000, memory: 256 } })))),
  ];
  const started = await Promise.all(ids.map(servers.waitForStart));
  const { min, max } = other.config.servers.server_ports;
  for (const { network } of started.slice(0, 3)) expect(network.ports.game?.public_port).toBeWithin(min, max + 1);
  expect(startedBy(full)).toEqual([]);
  await servers.destroy(ids[0] ?? '');
});

describe('two machines of one datacenter', () => {
  let one: TestService;
  let other: TestService;
  let game: TestGame;
  let servers: ReturnType<typeof serversOf>;
  let body: object;
  const ids: string[] = [];
  beforeAll(async () => {
    const settings = { MUSTER_SERVERS_MAX: String(ROOM) };
    one = await openTestService(settings);
    other = await openTestService(settings, { database_of: one });
    game = await makeGame(one.api, one.administrator_token);
    servers = serversOf(one, game);
    const build = await uploadShell(one.api, game, `trap 'exit 0' TERM; while :; do sleep 0.02; done`);
    // Each machine keeps its own uploads.
    const folderOf = ({ config }: TestService) => join(config.data_directory, 'builds', build);
    await cp(folderOf(one), folderOf(other), { recursive: true });
    body = await servers.bodyOf(build, { network: { ports: { game: { protocol: 'udp' } } } });
  }, 300_000);
  afterAll(async () => {
    await other[Symbol.asyncDispose]();
    await one[Symbol.asyncDispose]();
  }, 300_000);

  const create = async (): Promise<string> => (await servers.create(body)).body.server.id;

  test('share the waiting servers: each server starts once, on a machine with room', async () => {
    ids.push(...(await Promise.all(Array.from({ length: 2 * ROOM }, create))));
    const started = await Promise.all(ids.map(servers.waitForStart));
    expect(startedBy(one)).toHaveLength(ROOM);
    expect(startedBy(other)).toHaveLength(ROOM);
    expect([...startedBy(one), ...startedBy(other)].sort()).toEqual(ids.toSorted());
    const ports: number[] = started.map(({ network }) => network.ports.game.public_port);
    expect(new Set(ports).size).toBe(2 * ROOM);
    for (const machine of [one, other]) {
      const { min, max } = machine.config.servers.server_ports;
      for (const { network } of started.filter(({ id }) => startedBy(machine).includes(id)))
        expect(network.ports.game.public_port).toBeWithin(min, max + 1);
    }
  });

  test('let a server wait until one of them has room', async () => {
    const waiting = await create();
    const [first = ''] = startedBy(other);
    await servers.destroy(first);
    expect(await waitForEndEvent(other, first)).toMatchObject({ exit_code: 0 });
    await servers.waitForStart(waiting);
    expect(startedBy(other)).toContain(waiting);
    expect(startedBy(one)).toHaveLength(ROOM);
  });

  test('end their own servers only, when all servers of one are ended', async () => {
    // It waits, and does not end, because the first machine might take it.
    const next = await create();
    // The next server may start while these end, so it is not among them.
    const ended = startedBy(other);
    await other.service.stopServers();
    for (const server_id of ended) expect(findServerProcesses(server_id)).toEqual([]);
    for (const server_id of startedBy(one)) {
      expect((await servers.get(server_id)).destroyed_at).toBeUndefined();
      expect(findProcessesOf(server_id).length).toBeGreaterThanOrEqual(2);
    }
    // The machine with room takes the next server.
    await servers.waitForStart(next);
    expect(startedBy(other)).toContain(next);
  });

  test('end servers that were destroyed through the other machine', async () => {
    const [server_id = ''] = startedBy(one);
    expect(outcomeOf(await serversOf(other, game).destroy(server_id))).toBe('200');
    expect(await waitForEndEvent(one, server_id)).toMatchObject({ exit_code: 0 });
    expect(findServerProcesses(server_id)).toEqual([]);
    // Its log can be read there too.
    expect(outcomeOf(await serversOf(other, game).log(server_id))).toBe('200');
  });
});

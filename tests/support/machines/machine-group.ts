import { readdirSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { openExternalDatabase } from '../database/database.ts';
import { createGameServerClient, find, makeControlledGame, seatOf } from '../game-server.ts';
import { openInspector } from '../inspector.ts';
import type { Network } from '../network/network.ts';
import { openTcpProxy, type TcpProxy } from '../network/tcp-proxy.ts';
import { findProcessesOf } from '../processes.ts';
import { type Home, makeHome, type Program } from '../program.ts';
import { machineIdOf, machinesOf } from './machines.ts';

const CHECK_EVERY_MS = 200;

/** A machine of a group: a process of the program with data, ports and a connection to the database of its own. */
export interface GroupMachine {
  machine_id: string;
  home: Home;
  /** Its current process. */
  program: Program;
  /** The proxy between it and the database. */
  database_proxy: TcpProxy;
  /** The host of its game servers. */
  host: string;
}

/** A player in a lobby on a machine. */
export interface SeatedPlayer {
  game: Awaited<ReturnType<typeof makeControlledGame>>;
  lobby_id: string;
  server_id: string;
}

export interface GroupOptions {
  settings?: Record<string, string>;
  /** The networks of the last machines; the others are in that of the tests. */
  networks?: Network[];
  /** Settings of single machines, in order. */
  own_settings?: Record<string, string>[];
}

export type MachineGroup = Awaited<ReturnType<typeof openMachineGroup>>;

/** Starts machines on one database. Records what no machine may do, whichever machines run. */
export async function openMachineGroup(
  count: number,
  { settings = {}, networks = [], own_settings = [] }: GroupOptions = {},
) {
  await using opened = new AsyncDisposableStack();
  const external = opened.use(await openExternalDatabase());
  const target = new URL(external.url);
  const machines: GroupMachine[] = [];
  for (let index = 0; index < count; index += 1) {
    const network = networks[index - count + networks.length];
    const database_proxy = opened.use(
      await openTcpProxy({ host: target.hostname, port: Number(target.port) }, network?.outer_address),
    );
    const url = new URL(external.url);
    url.host = `${network?.outer_address ?? '127.0.0.1'}:${database_proxy.port}`;
    const home_settings = {
      DATABASE_URL: url.href,
      MUSTER_DEMO: 'off',
      MUSTER_CONTAINERS: 'off',
      ...settings,
      ...own_settings[index],
    };
    const home = opened.use(await makeHome(home_settings, network && { network }));
    const objects = join(home.data_directory, 'objects');
    // All machines read the same uploads.
    if (machines[0]) await symlink(join(machines[0].home.data_directory, 'objects'), objects);
    const program = await home.start({ settings: network ? { MUSTER_PUBLIC_URL: home.url } : {} });
    const machine_id = await machineIdOf(home.data_directory);
    machines.push({ machine_id, home, program, database_proxy, host: network?.address ?? '127.0.0.1' });
  }
  const database = opened.use(openDatabase({ url: external.url }, 2));
  const inspector = opened.use(openInspector({ database_address: { url: external.url } }));
  const faultsOfOwners = watchOwners(machines, opened);
  const faultsOfRows = await watchRows(database);
  const everything = opened.move();

  const operatorOf = (machine: GroupMachine) => machinesOf(machine.program);

  /** Puts a connected player into a lobby on a machine, through that machine. */
  async function seatOn(machine: GroupMachine): Promise<SeatedPlayer> {
    const operator = operatorOf(machine);
    const others = machines.filter((one) => one !== machine);
    for (const { machine_id } of others) await operator.drain(machine_id);
    const game = await makeControlledGame(machine.program, {
      game_modes: { default: { max_players: 100 } },
      max_players: 1_000,
    });
    const { lobby_id, player_token } = await seatOf(find(machine.program, game));
    for (const { machine_id } of others) await operator.endDrain(machine_id);
    const [server] = await database.queries.execute<{ server_id: string; node_id: string; port: number }>(sql`
      select server_id, node_id, (servers.ports -> 'game' ->> 'public_port')::int as port
      from servers join lobbies using (server_id) where lobby_id = ${lobby_id}`);
    if (server?.node_id !== machine.machine_id) throw new Error('the lobby is on another machine');
    const { server_id, port } = server;
    const environment = await (await fetch(`http://${machine.host}:${port}/`)).json();
    const { connected } = createGameServerClient(machine.program, environment.SERVICE_TOKEN);
    const { status } = await connected(player_token);
    if (status !== 200) throw new Error(`the player is not connected: ${status}`);
    return { game, lobby_id, server_id };
  }

  return {
    machines,
    database,
    /** The proxy between all machines and the database. */
    database_proxy: external.proxy,
    operatorOf,
    seatOn,
    /** Puts a connected player into a lobby on each machine. */
    async seatOnEach(): Promise<SeatedPlayer[]> {
      const seated: SeatedPlayer[] = [];
      for (const machine of machines) seated.push(await seatOn(machine));
      return seated;
    },
    /** Returns why a lobby and its players ended; undefined for each that has not. */
    async readEnd({ lobby_id }: SeatedPlayer) {
      const [row] = await database.queries.execute<{ stop_reason: string | null; seated: number }>(sql`
        select stop_reason, (select count(*)::int from players
          where players.lobby_id = lobbies.lobby_id and remove_ts is null) as seated
        from lobbies where lobby_id = ${lobby_id}`);
      return row;
    },
    isAlive: ({ server_id }: SeatedPlayer) => findProcessesOf(server_id).length > 0,
    /** Returns the rows of the machines, as any process sees them. */
    async rows() {
      const rows = await database.queries.execute<{ node_id: string; holder: string; beat: number; state: string }>(sql`
        select node_id, holder, beat::float8 as beat, state from machines order by node_id`);
      return new Map(rows.map(({ node_id, ...row }) => [node_id, row]));
    },
    /** Returns the servers that machines have files of, each with its machine. */
    listOnDisk: (): string[] =>
      machines.flatMap((machine) => serversOn(machine).map((id) => `${id} ${machine.machine_id}`)),
    /** Returns the servers that machines have by the database, each with its machine. */
    async listRecorded(): Promise<string[]> {
      const rows = await database.queries.execute<{ server_id: string; node_id: string }>(sql`
        select server_id, node_id from servers where node_id is not null and ended_at is null`);
      return rows.map(({ server_id, node_id }) => `${server_id} ${node_id}`);
    },
    /** Returns what was recorded so far. */
    async faults(): Promise<string[]> {
      return [...faultsOfOwners(), ...(await faultsOfRows()), ...(await inspector.faults())];
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

const serversOn = ({ home }: GroupMachine) => readdirSync(join(home.data_directory, 'servers'));

/** Watches the files of all machines, until the stack is disposed of. No server may be on two of them. */
function watchOwners(machines: GroupMachine[], opened: AsyncDisposableStack): () => string[] {
  const owners = new Map<string, string>();
  const faults: string[] = [];
  const check = () => {
    for (const machine of machines) {
      const { machine_id } = machine;
      for (const server_id of serversOn(machine)) {
        const owner = owners.get(server_id) ?? machine_id;
        owners.set(server_id, owner);
        if (owner !== machine_id) faults.push(`server ${server_id} is on ${owner} and ${machine_id}`);
      }
    }
  };
  const timer = setInterval(check, CHECK_EVERY_MS);
  opened.defer(() => clearInterval(timer));
  return () => {
    check();
    return faults;
  };
}

/** Lets PostgreSQL record every change that no process may make. Returns a function that returns them. */
async function watchRows({ queries }: Database): Promise<() => Promise<string[]>> {
  const rules: [table: string, key: string, condition: string, fault: string][] = [
    ['servers', 'server_id', 'old.node_id <> new.node_id', 'went to another machine'],
    ['servers', 'server_id', 'old.ended_at is distinct from new.ended_at and old.ended_at is not null', 'ended twice'],
    ['lobbies', 'lobby_id', 'old.stop_ts is distinct from new.stop_ts and old.stop_ts is not null', 'ended twice'],
    [
      'players',
      'player_id',
      'old.remove_ts is distinct from new.remove_ts and old.remove_ts is not null',
      'left twice',
    ],
  ];
  await queries.execute(sql.raw('create table faults_of_group (fault text not null)'));
  for (const [index, [table, key, condition, fault]] of rules.entries()) {
    const name = `fault_${index}`;
    await queries.execute(
      sql.raw(`create function ${name}() returns trigger language plpgsql as $$ begin
        insert into faults_of_group values ('${table} ' || old.${key} || ' ${fault}'); return new; end $$`),
    );
    await queries.execute(
      sql.raw(
        `create trigger ${name} after update on ${table} for each row when (${condition}) execute function ${name}()`,
      ),
    );
  }
  return async () => {
    const rows = await queries.execute<{ fault: string }>(sql`select fault from faults_of_group`);
    return rows.map(({ fault }) => fault);
  };
}

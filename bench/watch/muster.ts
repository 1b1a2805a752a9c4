import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { updateLobbies } from '../../src/features/lobbies/store.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { connectionOf } from '../../tests/support/database/embedded.ts';
import { copyLobbies } from '../../tests/support/lobbies/lobby-copies.ts';
import { makeRoomGame, READY_SOURCE } from '../../tests/support/lobbies/room.ts';
import { postgresOf } from '../../tests/support/processes.ts';
import { commandOf, makeHome } from '../../tests/support/program.ts';
import { now } from './orders.ts';
import type { PushServer, Scenario, Template } from './servers.ts';

/** Raises all limits and timeouts that the bench would reach. */
const SETTINGS = {
  MUSTER_DEMO: 'off',
  MUSTER_LOG: 'error',
  MUSTER_DATABASE_POOL: '10',
  MUSTER_LIMITS_SCALE: '1000000',
  MUSTER_WATCHERS_MAX: '100000',
  MUSTER_WATCHERS_PER_CALLER_MAX: '100000',
  MUSTER_SOCKETS_MAX: '100000',
  MUSTER_SOCKETS_PER_CALLER_MAX: '100000',
  MUSTER_CONNECTIONS_PER_ADDRESS_MAX: '100000',
  MUSTER_SEAT_TIMEOUT_MS: '3600000',
  MUSTER_WATCH_HOLD_MS: '50000',
  MUSTER_REQUEST_TIMEOUT_MS: '240000',
};

export interface Muster extends PushServer {
  template: Template;
}

/**
 * Starts the service from source on an embedded PostgreSQL. Lobbies are watched; a change gives them another state by
 * the statement of PUT /matchmaker/lobbies/state, which this process sends to PostgreSQL as another machine on the same
 * database would: the cost of HTTP is not measured here.
 */
export async function startMuster(opened: AsyncDisposableStack, name = 'Muster'): Promise<Muster> {
  const home = opened.use(await makeHome(SETTINGS));
  const program = await home.start({ command: commandOf('source') });
  const { public_token } = await makeRoomGame(program, { source: READY_SOURCE });
  const find = { token: public_token, body: { game_modes: ['default'] } };
  const { lobby_id: first } = (await program.api.ok('POST', '/matchmaker/lobbies/find', find)).lobby;
  const directory = join(home.data_directory, 'postgres');
  const database = opened.use(openDatabase(connectionOf({ directory }), 2));
  const lobbies = new Map<string, string[]>();

  /** Returns the ids of a scenario's lobbies: copies of the first one, which are created once. */
  async function lobbiesOf({ name, topics }: Scenario): Promise<string[]> {
    const known = lobbies.get(name);
    if (known) return known;
    const ids = Array.from({ length: topics }, () => crypto.randomUUID());
    lobbies.set(name, ids);
    const from = sql`lobbies as lobby, unnest(${sql.param(ids)}::uuid[]) as made where lobby.lobby_id = ${first}`;
    const changes = sql`jsonb_build_object('lobby_id', made, 'code', null, 'player_count', 0, 'state', ${stateOf(0)}::text)`;
    await database.queries.execute(copyLobbies(from, changes));
    return ids;
  }

  const idOf = (scenario: Scenario, topic: number) => lobbies.get(scenario.name)?.[topic] ?? '';
  const [sample = ''] = await lobbiesOf({ name: 'sample', topics: 1 });
  const answer = await program.api.get(`/matchmaker/lobbies/${sample}`, public_token);
  const index = answer.body.watch.index;
  const epoch = index.slice(0, index.indexOf('.'));
  const body = JSON.stringify(answer.body).replace(index, `${epoch}.NUMBER`);

  const headers = `authorization: Bearer ${public_token}\r\n`;
  const { port } = new URL(program.url);
  return {
    name,
    pid: program.pid,
    database_pid: postgresOf(home.data_directory),
    port: Number(port),
    dialect: 'plain',
    template: { body, headers },
    watch: (scenario, topic) => ({
      path: '/watch',
      headers: `sec-websocket-protocol: muster.watch.v1, bearer.${public_token}\r\n`,
      greeting: JSON.stringify({
        type: 'subscribe',
        id: 'a',
        path: `/matchmaker/lobbies/${idOf(scenario, topic)}`,
      }),
    }),
    poll: (scenario, topic) => ({
      path: `/matchmaker/lobbies/${idOf(scenario, topic)}?watch_index=${epoch}.`,
      headers,
    }),
    async prepare(scenario) {
      await lobbiesOf(scenario);
    },
    async change(scenario, number) {
      const ids = await lobbiesOf(scenario);
      const at = now();
      const state = stateOf(number);
      await updateLobbies(
        database.queries,
        ids.map((lobby_id) => ({ lobby_id, state })),
        new Date(),
      );
      return at;
    },
  };
}

/** A state of the same length for each number. */
function stateOf(number: number): string {
  return JSON.stringify({ round: String(number).padStart(6, '0'), map: 'harbour', leader: 'player-1' });
}

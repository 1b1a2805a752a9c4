import { sql } from 'drizzle-orm';
import { topics } from '../../../src/features/topics.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { touch } from '../../../src/platform/watch/versions.ts';
import type { Answer, Api } from '../api.ts';
import type { TestGame } from '../game.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../game-server.ts';
import type { TestService } from '../service.ts';
import { waitFor } from '../wait.ts';

/** The longest wait that a find may request, so that no find stops waiting by itself during a test. */
const LONG_MS = 45_000;

/** A find that waits in the queue. */
export interface Waiter {
  ticket: string;
  answer: Promise<Answer>;
  abort(): void;
  /** Its answer; undefined while it waits. */
  outcome: string | undefined;
}

/** Sends a find that waits. Resolves once it is in the queue. */
export async function queueUp(service: { api: Api }, game: TestGame, body: object = {}): Promise<Waiter> {
  const ticket = crypto.randomUUID();
  const leaving = new AbortController();
  const asking = find(service, game, { wait_ms: LONG_MS, ticket, ...body }, leaving.signal);
  const waiter: Waiter = { ticket, answer: asking, abort: () => leaving.abort(), outcome: undefined };
  waiter.answer = asking.then(
    (answer) => {
      waiter.outcome = answer.status === 200 ? '200' : `${answer.status} ${answer.body.code}`;
      return answer;
    },
    (error: unknown) => {
      waiter.outcome = 'aborted';
      throw error;
    },
  );
  waiter.answer.catch(() => {});
  await waitFor(
    async () => waiter.outcome !== undefined || (await placeOf(service, game, ticket)).is_waiting,
    'the find to wait',
  );
  return waiter;
}

export async function placeOf({ api }: { api: Api }, { public_token: token }: TestGame, ticket: string) {
  const { watch: _index, ...place } = await api.ok('GET', `/matchmaker/queue/${ticket}`, { token });
  return place;
}

/** Makes a game whose only lobby is full of players who can leave. */
export async function makeFullGame(
  service: Pick<TestService, 'api' | 'administrator_token'>,
  mode: object = {},
  others: Record<string, object> = {},
) {
  const { max_players = 2 } = mode as { max_players?: number };
  const game_modes = { default: { max_players, ...mode }, ...others };
  const game = await makeControlledGame(service, { lobby_count_max: 1, game_modes });
  const seats = await Promise.all(
    Array.from({ length: max_players }, () => seatOf(find(service, game, { regions: ['local'] }))),
  );
  const [{ lobby_id } = { lobby_id: '' }] = seats;
  const game_server = await connectGameServer(service, game, lobby_id);
  const tokens = seats.map(({ player_token }) => player_token);
  return {
    ...game,
    lobby_id,
    game_server,
    /** Disconnects one player. */
    async leave(): Promise<void> {
      await game_server.disconnected(tokens.pop() ?? '');
    },
    /** Adds a player to those who can leave, by the token. */
    addSeat: (token: string) => void tokens.push(token),
  };
}

/** Writes finds into the queue as another process would, with leases that the test chooses. */
export function openOtherProcess(database_address: TestService['database_address']) {
  const database: Database = openDatabase(database_address, 2);
  const owner = crypto.randomUUID();
  const change = (namespace_id: string, query: ReturnType<typeof sql>) =>
    database.transact(async (tx) => {
      await touch(tx, [topics.queueOf(namespace_id)]);
      await tx.execute(query);
    });
  return {
    /** Adds a waiting find for any seat of the namespace's version, with a lease until `lease_ts`. */
    async wait(
      { namespace_id }: { namespace_id: string },
      lease_ts: Date,
      more: { seats?: number; count?: number; ticket?: string } = {},
    ) {
      const { seats = 1, count = 1, ticket = null } = more;
      await change(
        namespace_id,
        sql`insert into queued_finds (namespace_id, ticket, owner, lease_ts, client, seats, version_id, game_modes, regions, tags)
          select namespace_id, coalesce(${ticket}::uuid, gen_random_uuid()), ${owner}::uuid, ${lease_ts.toISOString()}::timestamptz, 'other process', ${seats},
            version_id, '{default}', '{local}', '{}'
          from namespaces, generate_series(1, ${count}) where namespace_id = ${namespace_id}`,
      );
    },
    /** Ends the lease of a find of any process. */
    async endLease(ticket: string): Promise<void> {
      await database.queries.execute(sql`update queued_finds set lease_ts = now() where ticket = ${ticket}`);
    },
    leave: ({ namespace_id }: { namespace_id: string }) =>
      change(namespace_id, sql`delete from queued_finds where namespace_id = ${namespace_id} and owner = ${owner}`),
    /** Lets PostgreSQL refuse to remove a find from the queue, until `allow` is called. */
    async refuseToLeave(ticket: string): Promise<{ hasRefused(): Promise<boolean>; allow(): Promise<void> }> {
      const run = (text: string) => database.queries.execute<{ is_called: boolean }>(sql.raw(text));
      await run('create sequence refusals');
      await run(`create function refuse_to_leave() returns trigger language plpgsql as
        $$ begin perform nextval('refusals'); raise exception 'refused'; end $$`);
      await run(`create trigger refuse_to_leave before delete on queued_finds for each row
        when (old.ticket = '${ticket}') execute function refuse_to_leave()`);
      return {
        // Unlike a row, the next value of a sequence stays when its transaction is rolled back.
        hasRefused: async () => (await run('select is_called from refusals'))[0]?.is_called === true,
        async allow() {
          await run('drop function refuse_to_leave cascade');
          await run('drop sequence refusals');
        },
      };
    },
    async versionOf(lobby_id: string): Promise<string | undefined> {
      const [row] = await database.queries.execute<{ version_id: string }>(sql`
        select version_id from lobbies where lobby_id = ${lobby_id}`);
      return row?.version_id;
    },
    /** Returns all waiting finds of a namespace. */
    async count({ namespace_id }: { namespace_id: string }): Promise<number> {
      const [row] = await database.queries.execute<{ count: number }>(sql`
        select count(*)::int as count from queued_finds where namespace_id = ${namespace_id}`);
      return row?.count ?? 0;
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

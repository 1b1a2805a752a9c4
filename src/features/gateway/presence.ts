import { ConstantBackoff, handleWhenResult, retry } from 'cockatiel';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { forEachAtOnce } from '../../platform/pacing.ts';
import type { Lobbies } from '../lobbies/lobbies.ts';
import type { Machines } from '../machines/machines.ts';
import * as store from './store.ts';

/** How long a player who lost the connection may come back with the same token. */
const RECONNECT_WITHIN_MS = 30_000;
const EVERY_MS = 5_000;
/** Players come back while the end of their last connection is being reported, for example when they reload a page. */
const TAKING_AGAIN = { maxAttempts: 20, backoff: new ConstantBackoff(100) };
/** Departures to report at a time: fewer than the connections to the database, which others need too. */
const REPORTED_AT_ONCE = 4;

export interface PresenceDependencies {
  database: Database;
  events: Events;
  lobbies: Pick<Lobbies, 'reportConnectFromGateway' | 'reportLeaveFromGateway'>;
  machines: Pick<Machines, 'withoutProcess'>;
  /** This machine. */
  node_id: string;
}

/** The connection of a player who was admitted to a server. */
export interface AdmittedPlayer extends store.PlayerConnection {
  /** Reports that the connection is over. Keeps the seat for a while if the player may come back. */
  end(how: { may_come_back: boolean }): void;
}

interface Departure extends store.PlayerConnection {
  /** How long the seat is kept; undefined if the player was refused, so that the connection had none. */
  reconnect_within_ms: number | undefined;
}

export type Presence = ReturnType<typeof createPresence>;

/** Creates the reports of players who connect and disconnect at ports whose game server does not report them. */
export function createPresence({ database, events, lobbies, machines, node_id }: PresenceDependencies) {
  const { queries } = database;
  /** Connections of this process that are not reported as over. */
  const own_connection_ids = new Set<string>();
  /** Ended connections that are not reported yet, by their ids. */
  const departures = new Map<string, Departure>();
  let reporting: Pick<Loop, 'wake'> | undefined;

  const takeWhenReported = retry(
    handleWhenResult((outcome) => outcome === 'refused'),
    TAKING_AGAIN,
  );

  /**
   * Records a connection. Throws MATCHMAKER_PLAYER_ALREADY_CONNECTED if the end of an earlier one is still not reported
   * after two seconds.
   */
  async function takeConnection(connection: store.PlayerConnection): Promise<'first' | 'replacing'> {
    const outcome = await takeWhenReported.execute(() => store.takeConnection(database, node_id, connection));
    if (outcome === 'refused') throw new ServiceError('MATCHMAKER_PLAYER_ALREADY_CONNECTED', {});
    return outcome;
  }

  /** Notes an ended connection, which the loop reports. */
  function depart(departure: Departure): void {
    departures.set(departure.connection_id, departure);
    reporting?.wake();
  }

  /**
   * Reports an ended connection, unless another connection of the player has replaced it, or another machine reports it.
   * Repeating it is harmless.
   */
  async function reportOne(departure: Departure): Promise<void> {
    const { player_id, connection_id, reconnect_within_ms } = departure;
    try {
      if (await store.endConnection(queries, node_id, departure)) {
        if (reconnect_within_ms !== undefined) await lobbies.reportLeaveFromGateway(player_id, reconnect_within_ms);
        await store.deleteConnection(queries, departure);
      }
    } catch (cause) {
      // It comes after the others, which it would delay.
      departures.delete(connection_id);
      departures.set(connection_id, departure);
      throw cause;
    }
    departures.delete(connection_id);
    own_connection_ids.delete(connection_id);
  }

  async function report(): Promise<number> {
    const ended = [...departures.values()];
    await forEachAtOnce(ended, REPORTED_AT_ONCE, reportOne);
    return ended.length;
  }

  /** Tries to delete the connection of a refused player. */
  async function tryToDelete(connection: store.PlayerConnection): Promise<boolean> {
    try {
      await store.deleteConnection(queries, connection);
      return true;
    } catch {
      // The caller needs the refusal more than this failure. The loop deletes the connection later.
      return false;
    }
  }

  /** Returns the connections that earlier processes of these machines have left without reporting their end. */
  async function findUnreported(node_ids: string[]): Promise<store.PlayerConnection[]> {
    const unreported: store.PlayerConnection[] = [];
    for (let last: string | undefined; ; ) {
      const read = await store.selectConnectionsOf(queries, { node_id, node_ids, after_player_id: last });
      // Players may have come back to this process already.
      unreported.push(...read.filter(({ connection_id }) => !own_connection_ids.has(connection_id)));
      if (read.length < store.CONNECTIONS_READ_MAX) return unreported;
      last = read.at(-1)?.player_id;
    }
  }

  return {
    /**
     * Admits the player with a token to the lobby on a server: records that the player has connected. A player who is
     * connected through the gateway may connect again, and the new connection replaces the old one.
     */
    async admit(server_id: string, token: string): Promise<AdmittedPlayer> {
      const connection_id = crypto.randomUUID();
      own_connection_ids.add(connection_id);
      let taken: store.PlayerConnection | undefined;
      try {
        const player_id = await lobbies.reportConnectFromGateway(server_id, token, {
          // Before the player counts as connected, so that a crash leaves no player connected forever.
          async mayReplace(player_id) {
            taken = { player_id, connection_id };
            return (await takeConnection(taken)) === 'replacing';
          },
        });
        return {
          player_id,
          connection_id,
          end({ may_come_back }) {
            depart({ player_id, connection_id, reconnect_within_ms: may_come_back ? RECONNECT_WITHIN_MS : 0 });
          },
        };
      } catch (error) {
        const is_refused = error instanceof ServiceError && error.status < 500;
        if (taken && !is_refused) {
          // The player may be connected.
          depart({ ...taken, reconnect_within_ms: RECONNECT_WITHIN_MS });
        } else if (taken && !(await tryToDelete(taken))) {
          depart({ ...taken, reconnect_within_ms: undefined });
        } else {
          own_connection_ids.delete(connection_id);
        }
        throw error;
      }
    },
    /**
     * Returns those of these connections that are over, and why: the player has connected again, or other machines gave the
     * connection up while they could not reach this one.
     */
    async overAmong<One extends store.PlayerConnection>(
      connections: readonly One[],
    ): Promise<ReadonlyMap<One, 'replaced' | 'given_up'>> {
      const player_ids = new Set(connections.map(({ player_id }) => player_id));
      const last_of = await store.selectLastOf(queries, [...player_ids]);
      const over = new Map<One, 'replaced' | 'given_up'>();
      for (const connection of connections) {
        const last = last_of.get(connection.player_id);
        if (last && last.connection_id !== connection.connection_id) over.set(connection, 'replaced');
        else if (!last || last.is_ended) over.set(connection, 'given_up');
      }
      return over;
    },
    /**
     * Starts the loop that reports ended connections: first those of an earlier process of this machine, then those of
     * this process and of machines without a process, which could not report them.
     */
    startReporting(signal: AbortSignal): Loop {
      let has_recovered = false;
      const loop = startLoop({
        name: 'gateway-presence',
        every_ms: EVERY_MS,
        // A departure that cannot be reported, for example because its lobby is locked, does not delay later ones for long.
        pause_max_ms: EVERY_MS,
        signal,
        events,
        async step() {
          const others = machines.withoutProcess();
          const ended_machines = has_recovered ? others : [node_id, ...others];
          const unreported = ended_machines.length > 0 ? await findUnreported(ended_machines) : [];
          for (const one of unreported) {
            if (departures.has(one.connection_id)) continue;
            departures.set(one.connection_id, { ...one, reconnect_within_ms: RECONNECT_WITHIN_MS });
          }
          has_recovered = true;
          return await report();
        },
      });
      reporting = loop;
      return loop;
    },
    /** Reports the connections that ended last, when the service stops. */
    reportNow: (): Promise<number> => report(),
  };
}

import type { Database } from '../../../platform/database/database.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { RequestDeadline } from '../../../platform/http/request-deadline.ts';
import type { Watch } from '../../../platform/watch/watch.ts';
import { READY_CALL } from '../../matchmaker-paths.ts';
import type { Outcome, Servers } from '../../servers/servers.ts';
import { topics } from '../../topics.ts';
import { lobbyStopped } from '../refusals.ts';
import * as store from '../store.ts';
import type { LobbyRow } from '../tables.ts';
import type { Seat } from './seat.ts';
import { waitingTime } from './waiting-time.ts';

export interface ReadinessDependencies {
  database: Database;
  watch: Watch;
  servers: Servers;
  request_timeout_ms: number;
}

/**
 * Waits until the lobby of a seat is ready, and returns its ports; undefined if the request has ended. Throws
 * MATCHMAKER_LOBBY_STOPPED, or MATCHMAKER_LOBBY_NOT_READY shortly before the time limit of the request.
 */
export async function waitUntilReady(
  dependencies: ReadinessDependencies,
  { lobby_id }: Seat,
  player_id: string,
  deadline: RequestDeadline,
): Promise<LobbyRow['ports'] | undefined> {
  const { database, watch, request_timeout_ms } = dependencies;
  const readPorts = async () => {
    const lobby = await store.selectLobbyWithoutState(database.queries, lobby_id);
    if (!lobby) throw lobbyStopped();
    if (lobby.stop_ts) throw lobby.ready_ts ? lobbyStopped() : await explainStop(dependencies, lobby);
    return lobby.ports ?? undefined;
  };
  const timeout_ms = waitingTime(deadline, request_timeout_ms);
  // Counts each player as a caller, because a lobby may have more players than one caller may have waiters.
  const wait_options = { signal: deadline.signal, caller_key: `player:${player_id}`, timeout_ms };
  const ports = await watch.until(topics.lobby(lobby_id), readPorts, wait_options);
  if (ports || deadline.is_over) return ports;
  const lateness = await explainLateness(dependencies, lobby_id);
  if (lateness) throw lateness;
  return await readPorts();
}

/** Explains why a lobby stopped before it was ready. Players read it, so it does not repeat what the server wrote. */
async function explainStop({ servers }: ReadinessDependencies, lobby: store.LobbyWithoutState): Promise<ServiceError> {
  const outcome = await outcomeOf(servers, lobby);
  const { server_id } = lobby;
  const { exit_code = null, exit_signal = null } = outcome ?? {};
  const metadata = { server_id, exit_code, exit_signal };
  const reason = `${describeEnd(lobby, outcome)}. ${adviceAfter(lobby)}`;
  return new ServiceError('MATCHMAKER_LOBBY_STOPPED', { reason }, { metadata });
}

async function explainLateness(
  { database, servers, request_timeout_ms: timeout_ms }: ReadinessDependencies,
  lobby_id: string,
): Promise<ServiceError | undefined> {
  const lobby = await store.selectLobbyWithoutState(database.queries, lobby_id);
  if (!lobby || lobby.ready_ts) return undefined;
  const { server_id } = lobby;
  const has_started = Boolean((await outcomeOf(servers, lobby))?.started_at);
  const reason = has_started
    ? `its server is running, but has not called ${READY_CALL}. See the log of server ${server_id}`
    : await explainWait(servers, server_id);
  return new ServiceError('MATCHMAKER_LOBBY_NOT_READY', { timeout_ms, reason }, { metadata: { server_id } });
}

async function explainWait(servers: Servers, server_id: string): Promise<string> {
  const reason = await servers.whyWaiting(server_id);
  return `no machine has started its server ${server_id} yet${reason === undefined ? '' : `: ${reason}`}`;
}

async function outcomeOf(servers: Servers, { server_id }: store.LobbyWithoutState): Promise<Outcome | undefined> {
  return (await servers.outcomesOf([server_id])).get(server_id);
}

/** Returns what to do after a lobby stopped before it was ready. */
function adviceAfter({ stop_reason }: store.LobbyWithoutState): string {
  switch (stop_reason) {
    case 'machine_lost':
    case 'machine_drained':
      return 'Find or create another lobby, which will be on another machine';
    case 'removed':
    case 'idle':
      return 'Find or create another lobby';
    default:
      return 'See the log of the server. Another request will probably fail in the same way';
  }
}

function describeEnd({ stop_reason }: store.LobbyWithoutState, outcome: Outcome | undefined): string {
  if (stop_reason === 'machine_lost') return 'its machine was lost';
  if (stop_reason === 'machine_drained') return 'its machine is being drained';
  if (stop_reason === 'removed' || stop_reason === 'idle') return `it was ended before its server called ${READY_CALL}`;
  if (stop_reason === 'not_ready_in_time') return `its server did not call ${READY_CALL} in time`;
  if (outcome?.failure) return 'its server could not be started, or was lost';
  if (outcome?.exit !== undefined) return `its server ${outcome.exit} before it called ${READY_CALL}`;
  return `it was ended before its server called ${READY_CALL}`;
}

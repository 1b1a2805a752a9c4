import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import type { RequestDeadline } from '../../../platform/http/request-deadline.ts';
import type { Tokens } from '../../../platform/tokens/tokens.ts';
import type { Datacenters } from '../../datacenters/datacenters.ts';
import type { AddressOf } from '../../port-names.ts';
import * as playersStore from '../players-store.ts';
import type { AbandonedSeats } from '../upkeep/abandoned-seats.ts';
import { type JoinAnswer, toJoinAnswer, toPorts } from '../wire.ts';
import type { ReceiptDraft } from './receipts/receipt-draft.ts';
import { playerIdsOf, type SeatRequest } from './rounds/seat-requests.ts';
import type { Seat } from './seat.ts';
import { type ReadinessDependencies, waitUntilReady } from './wait-until-ready.ts';

export interface AnswerDependencies extends ReadinessDependencies {
  database: Database;
  clock: Clock;
  tokens: Tokens;
  datacenters: Datacenters;
  addressOf: AddressOf;
  abandoned_seats: Pick<AbandonedSeats, 'add'>;
  /** Called after seats were freed: their lobby may be empty now. */
  onSeatsFreed(): void;
}

/** The players that a seat was committed for. */
type SeatedPlayers = Pick<SeatRequest, 'player_id' | 'others' | 'namespace_id'>;

interface HeldSeat {
  seat: Seat;
  players: SeatedPlayers;
  deadline: RequestDeadline;
  draft: ReceiptDraft;
}

/** Waits until the lobby of a seat is ready, and returns the answer. Releases the seat if the request ends before that. */
export async function answerWhenReady(
  dependencies: AnswerDependencies,
  { seat, players, deadline, draft }: HeldSeat,
): Promise<JoinAnswer> {
  const { addressOf, datacenters, tokens } = dependencies;
  draft.recordSeat(seat);
  try {
    const ports = seat.ports ?? (await waitUntilReady(dependencies, seat, players.player_id, deadline));
    if (!ports) throw deadline.toError();
    draft.recordStage('ready');
    const region = (await datacenters.list()).find(({ slug }) => slug === seat.region);
    const player_tokens: string[] = [];
    for (const player_id of playerIdsOf(players)) {
      player_tokens.push(await tokens.issue({ kind: 'player', player_id }));
    }
    // The exchange drops an answer after the deadline, so the client would not get its seats.
    if (deadline.is_over) throw deadline.toError();
    const lobby = {
      lobby_id: seat.lobby_id,
      ...(seat.code === null ? {} : { code: seat.code }),
      region: { region_id: seat.region, display_name: region?.name ?? seat.region },
    };
    return toJoinAnswer(lobby, toPorts(ports, addressOf), player_tokens);
  } catch (error) {
    await releaseSeats(dependencies, players);
    throw error;
  }
}

/** Releases seats now, or later if the database does not answer: the client needs to know why its request ended. */
async function releaseSeats(
  { database, clock, abandoned_seats, onSeatsFreed }: AnswerDependencies,
  players: SeatedPlayers,
): Promise<void> {
  const { namespace_id } = players;
  const player_ids = playerIdsOf(players);
  const how = { reason: 'request_ended', now: clock.now() } as const;
  try {
    const is_theirs = playersStore.isAmong(player_ids);
    const { removed } = await playersStore.removePlayers(database.queries, namespace_id, is_theirs, how);
    if (removed > 0) onSeatsFreed();
  } catch {
    abandoned_seats.add(player_ids.map((player_id) => ({ namespace_id, player_id })));
  }
}

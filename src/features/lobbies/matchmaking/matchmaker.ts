import type { CallerOf } from '../../../platform/tokens/caller.ts';
import type { Feed } from '../../../platform/watch/feed.ts';
import type { Counters } from '../../counters/counters.ts';
import type { NamespaceScope } from '../../namespaces/namespaces.ts';
import type { AbandonedSeats } from '../upkeep/abandoned-seats.ts';
import type { SeatKey } from '../upkeep/abandoned-seats-store.ts';
import type { AvoidedLobbies } from '../upkeep/avoided-lobbies.ts';
import type { CreateBody, FindBody, JoinBody } from '../wire.ts';
import { type CreateDependencies, create } from './create.ts';
import { type FindDependencies, find } from './find.ts';
import { type JoinDependencies, join } from './join.ts';
import { createLobbyCache } from './lobby-cache/lobby-cache.ts';
import { type CreatePlannedDependencies, createPlannedLobbies } from './new-lobbies/create-lobbies.ts';
import { createQueue, type QueueDependencies } from './queue/queue.ts';
import { createReceipts, type ReceiptsDependencies } from './receipts/receipts.ts';
import type { RequestContext } from './request-context.ts';
import type { PlannedLobby } from './rounds/planner.ts';
import { playerIdsOf } from './rounds/seat-requests.ts';
import { createSeatRounds } from './rounds/seat-rounds.ts';
import { openSeatTaking } from './rounds/seat-taking.ts';
import type { VerificationTrial } from './trials/trials-wire.ts';
import { tryVerification } from './trials/try-verification.ts';

/** The dependencies that the matchmaker creates itself. */
type OwnParts = 'cache' | 'rounds' | 'queue' | 'receipts' | 'createPlanned';

export type MatchmakerDependencies = Omit<FindDependencies & JoinDependencies & CreateDependencies, OwnParts> &
  CreatePlannedDependencies &
  QueueDependencies &
  ReceiptsDependencies & {
    counters: Pick<Counters, 'count'>;
    feed: Feed;
    avoided: AvoidedLobbies;
    abandoned_seats: AbandonedSeats;
    seat_timeout_ms: number;
    /** Called after lobbies were created. */
    onCreated(): void;
  };

/** Creates the matchmaker, which gives players seats by find, join and create. */
export function createMatchmaker(dependencies: MatchmakerDependencies) {
  const { counters, abandoned_seats } = dependencies;
  const cache = createLobbyCache(dependencies);
  const createPlanned = async (planned: PlannedLobby[]) => {
    const outcomes = await createPlannedLobbies(dependencies, planned);
    for (const outcome of outcomes) {
      if (outcome.is === 'refused') abandoned_seats.addAfter(outcome.error, firstSeatsOf(outcome.planned));
    }
    dependencies.onCreated();
    return outcomes;
  };
  const receipts = createReceipts(dependencies);
  const rounds = createSeatRounds({
    cache,
    seat_taking: openSeatTaking(dependencies),
    createPlanned,
    pool_max: dependencies.database.pool_max,
  });
  const queue = createQueue({ ...dependencies, rounds });
  const parts = { ...dependencies, cache, createPlanned, receipts, rounds, queue };
  return {
    queue,
    receipts,
    find: (caller: CallerOf<'public'>, body: FindBody, context: RequestContext) =>
      counters.count('find', caller.namespace_id, () => find(parts, caller, body, context)),
    join: (caller: CallerOf<'public'>, body: JoinBody, context: RequestContext) =>
      counters.count('join', caller.namespace_id, () => join(parts, caller, body, context)),
    create: (caller: CallerOf<'public'>, body: CreateBody, context: RequestContext) =>
      counters.count('create', caller.namespace_id, () => create(parts, caller, body, context)),
    tryVerification: (scope: NamespaceScope, trial: VerificationTrial, context: Omit<RequestContext, 'readOrigin'>) =>
      tryVerification(dependencies, scope, trial, context),
  };
}

/** Returns the seats of a planned lobby's first requests. */
function firstSeatsOf({ namespace_id, first_requests }: PlannedLobby): SeatKey[] {
  return first_requests.flatMap(playerIdsOf).map((player_id) => ({ namespace_id, player_id }));
}

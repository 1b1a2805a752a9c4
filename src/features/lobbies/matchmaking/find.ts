import type { RequestDeadline } from '../../../platform/http/request-deadline.ts';
import { omitUndefined } from '../../../platform/omit-undefined.ts';
import type { CallerOf } from '../../../platform/tokens/caller.ts';
import type { NamespaceRow } from '../../namespaces/namespaces.ts';
import type { FindBody, JoinAnswer } from '../wire.ts';
import { type AnswerDependencies, answerWhenReady } from './answer-when-ready.ts';
import { CheckedFind, type CheckedFindDependencies } from './checked-find.ts';
import { requireNamespace } from './current-version.ts';
import type { Queue, WaitOptions } from './queue/queue.ts';
import type { ReceiptSubject } from './receipts/receipt-draft.ts';
import type { Receipts } from './receipts/receipts.ts';
import { cutTags } from './request-checks.ts';
import type { RequestContext } from './request-context.ts';
import { createPlayerIds } from './rounds/seat-requests.ts';
import type { Rounds } from './rounds/seat-rounds.ts';

export interface FindDependencies extends CheckedFindDependencies, AnswerDependencies {
  rounds: Rounds;
  queue: Queue;
  receipts: Receipts;
}

/**
 * Returns a seat in the fullest suitable lobby, or in a lobby created for the request, once the lobby is ready. With
 * `wait_ms`, the find waits for its turn while the namespace is at its limit of lobbies.
 */
export async function find(
  dependencies: FindDependencies,
  { namespace_id }: CallerOf<'public'>,
  body: FindBody,
  context: RequestContext,
): Promise<JoinAnswer> {
  const { namespaces, rounds, queue, receipts } = dependencies;
  const namespace = await requireNamespace(namespaces, namespace_id);
  return await receipts.withReceipt(
    () => toReceiptSubject(namespace, body, context),
    async (draft) => {
      const players = createPlayerIds(body);
      const { deadline } = context;
      const wait_options = toWaitOptions(body, deadline);
      const sent_find = { namespace_id, players, body, context, ticket: wait_options?.ticket, draft };
      const checked_find = new CheckedFind(dependencies, sent_find);
      const seat = wait_options
        ? await queue.awaitSeat(() => checked_find.nextRequest(), wait_options, draft)
        : await rounds.takeSeat(await checked_find.nextRequest(), { draft, deadline });
      return await answerWhenReady(dependencies, { seat, players: { ...players, namespace_id }, deadline, draft });
    },
  );
}

/** Returns how a find waits in the queue; undefined if it does not. */
function toWaitOptions({ wait_ms, ticket }: FindBody, deadline: RequestDeadline): WaitOptions | undefined {
  if (wait_ms === undefined) return undefined;
  return { wait_ms, ticket: ticket?.toLowerCase() ?? crypto.randomUUID(), deadline };
}

function toReceiptSubject(namespace: NamespaceRow, body: FindBody, { ray_id }: RequestContext): ReceiptSubject {
  const { namespace_id, version_id } = namespace;
  const { game_modes, regions, tags, max_players, wait_ms, players = 1 } = body;
  const request = {
    ...omitUndefined({ game_modes, regions, tags: tags && cutTags(tags), max_players, wait_ms }),
    creates: body.prevent_auto_create_lobby !== true,
    players,
  };
  return { kind: 'find', ray_id, namespace_id, version_id, request };
}

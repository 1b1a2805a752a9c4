import { omitUndefined } from '../../../platform/omit-undefined.ts';
import type { CallerOf } from '../../../platform/tokens/caller.ts';
import type { NamespaceRow } from '../../namespaces/namespaces.ts';
import type { FindBody, JoinAnswer } from '../wire.ts';
import { type AnswerDependencies, answerWhenReady } from './answer-when-ready.ts';
import { CheckedFind, type CheckedFindDependencies } from './checked-find.ts';
import { requireNamespace } from './current-version.ts';
import type { Queue } from './queue/queue.ts';
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
    () => describe(namespace, body, context),
    async (draft) => {
      const players = createPlayerIds(body);
      const { deadline } = context;
      const { wait_ms } = body;
      const waiting = wait_ms === undefined ? undefined : { wait_ms, ticket: ticketOf(body), deadline };
      const sent = { namespace_id, players, body, context, ticket: waiting?.ticket, draft };
      const checked = new CheckedFind(dependencies, sent);
      const seat = waiting
        ? await queue.awaitSeat(() => checked.nextRequest(), waiting, draft)
        : await rounds.takeSeat(await checked.nextRequest(), { draft, deadline });
      return await answerWhenReady(dependencies, { seat, players: { ...players, namespace_id }, deadline, draft });
    },
  );
}

const ticketOf = ({ ticket }: FindBody) => ticket?.toLowerCase() ?? crypto.randomUUID();

function describe(namespace: NamespaceRow, body: FindBody, { ray_id }: RequestContext): ReceiptSubject {
  const { namespace_id, version_id } = namespace;
  const { game_modes, regions, tags, max_players, wait_ms, players = 1 } = body;
  const wanted = omitUndefined({ game_modes, regions, tags: tags && cutTags(tags), max_players, wait_ms });
  const request = { ...wanted, creates: body.prevent_auto_create_lobby !== true, players };
  return { kind: 'find', ray_id, namespace_id, version_id, request };
}

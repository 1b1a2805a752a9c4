import type { AddressClasses } from '../../../platform/address-classes.ts';
import type { CallerOf } from '../../../platform/tokens/caller.ts';
import type { Captcha } from '../../captcha/captcha.ts';
import type { NamespaceRow, Namespaces } from '../../namespaces/namespaces.ts';
import type { FindBody, JoinAnswer } from '../wire.ts';
import { type AnswerDependencies, answerWhenReady } from './answer-when-ready.ts';
import { createCaptchaGate, type PassCaptcha } from './captcha-gate.ts';
import { type ChoicesDependencies, listChoices } from './choices.ts';
import { toClient } from './clients.ts';
import { atCurrentVersion, requireNamespace } from './current-version.ts';
import { omitUndefined } from './omit-undefined.ts';
import type { Queue } from './queue.ts';
import type { ReceiptDraft, ReceiptSubject } from './receipt-draft.ts';
import type { Receipts } from './receipts.ts';
import { cutTags, planSearch, type Search } from './request-checks.ts';
import { createPlayerIds, type RequestContext } from './request-context.ts';
import type { FindRequest } from './seat-requests.ts';
import type { Rounds } from './seat-rounds.ts';
import { createVerificationIds, type VerificationIds, type VerifyDependencies, verifyFind } from './verify.ts';

export interface FindDependencies extends ChoicesDependencies, VerifyDependencies, AnswerDependencies {
  namespaces: Namespaces;
  captcha: Pick<Captcha, 'admit'>;
  rounds: Rounds;
  queue: Queue;
  receipts: Receipts;
  address_classes: AddressClasses;
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
      const in_progress = { body, context, ticket: waiting?.ticket, draft };
      const prepare = createPreparation(dependencies, { namespace_id, players }, in_progress);
      const seat = waiting
        ? await queue.awaitSeat(prepare, waiting, draft)
        : await rounds.takeSeat(await prepare(), { draft, deadline });
      return await answerWhenReady(dependencies, { seat, players: { ...players, namespace_id }, deadline, draft });
    },
  );
}

const ticketOf = ({ ticket }: FindBody) => ticket?.toLowerCase() ?? crypto.randomUUID();

/** A search that was checked against a version, and that passed captcha and verification. */
interface PermittedSearch {
  version_id: string;
  search: Search;
}

interface FindInProgress {
  body: FindBody;
  context: RequestContext;
  ticket: string | undefined;
  draft: ReceiptDraft | undefined;
}

/**
 * Returns the function that prepares a find for the matchmaker's decision. A find that waits is prepared before each
 * decision, and is checked again if the namespace has another version by then.
 */
function createPreparation(
  dependencies: FindDependencies,
  { namespace_id, players }: { namespace_id: string; players: ReturnType<typeof createPlayerIds> },
  in_progress: FindInProgress,
): () => Promise<FindRequest> {
  const { namespaces, captcha, address_classes } = dependencies;
  const { body, context, draft } = in_progress;
  const { address } = context;
  const passCaptcha = createCaptchaGate(captcha, body, context, draft);
  const nextVerificationId = createVerificationIds(context);
  let permitted: PermittedSearch | undefined;

  return async () => {
    let namespace = await requireNamespace(namespaces, namespace_id);
    if (permitted?.version_id !== namespace.version_id) {
      const permit = (current: NamespaceRow) =>
        permitSearch(dependencies, { ...in_progress, passCaptcha, nextVerificationId }, current);
      ({ result: permitted, namespace } = await atCurrentVersion(namespaces, namespace, permit));
    }
    const { game_id, lobby_count_max } = namespace;
    const client = toClient(namespace, address, address_classes);
    const is_explained = draft !== undefined;
    const request = { game_id, namespace_id, address, client, lobby_count_max, is_explained };
    return { kind: 'find', ...players, ...permitted, ...request };
  };
}

/** Checks a find against the namespace's version: its body, the captcha, and the game's own verification. */
async function permitSearch(
  dependencies: FindDependencies,
  {
    body,
    context,
    ticket,
    draft,
    passCaptcha,
    nextVerificationId,
  }: FindInProgress & {
    passCaptcha: PassCaptcha;
    nextVerificationId: VerificationIds;
  },
  { game_id, namespace_id, version_id }: NamespaceRow,
): Promise<PermittedSearch> {
  draft?.recordSearch(version_id, body.regions);
  const choices = await listChoices(dependencies, { game_id, version_id }, body);
  const search = planSearch(body, choices.modes, choices.regions);
  draft?.recordSearch(version_id, search.regions);
  await passCaptcha({ game_id, namespace_id, version_id });
  const subject = { game_id, namespace_id, version_id, context, nextVerificationId, ticket, draft };
  return { version_id, search: await verifyFind(dependencies, subject, { body, search, choices }) };
}

function describe(namespace: NamespaceRow, body: FindBody, { ray_id }: RequestContext): ReceiptSubject {
  const { namespace_id, version_id } = namespace;
  const { game_modes, regions, tags, max_players, wait_ms, players = 1 } = body;
  const wanted = omitUndefined({ game_modes, regions, tags: tags && cutTags(tags), max_players, wait_ms });
  const request = { ...wanted, creates: body.prevent_auto_create_lobby !== true, players };
  return { kind: 'find', ray_id, namespace_id, version_id, request };
}

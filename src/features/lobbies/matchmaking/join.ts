import type { AddressClasses } from '../../../platform/address-classes.ts';
import { ServiceError } from '../../../platform/errors.ts';
import { omitUndefined } from '../../../platform/omit-undefined.ts';
import type { CallerOf } from '../../../platform/tokens/caller.ts';
import type { Captcha } from '../../captcha/captcha.ts';
import { normalizeCode } from '../../codes.ts';
import type { NamespaceRow, Namespaces } from '../../namespaces/namespaces.ts';
import type { Versions } from '../../versions/versions.ts';
import { lobbyStopped } from '../refusals.ts';
import * as store from '../store.ts';
import type { LobbyRow } from '../tables.ts';
import type { JoinAnswer, JoinBody } from '../wire.ts';
import { type AnswerDependencies, answerWhenReady } from './answer-when-ready.ts';
import { createCaptchaGate } from './captcha-gate.ts';
import { limitedClientOf } from './client-limits.ts';
import { requireNamespace } from './current-version.ts';
import type { LobbyCache } from './lobby-cache/lobby-cache.ts';
import type { ReceiptDraft, ReceiptSubject } from './receipts/receipt-draft.ts';
import type { Receipts } from './receipts/receipts.ts';
import { checkAction } from './request-checks.ts';
import type { RequestContext } from './request-context.ts';
import { createPlayerIds, type JoinRequest } from './rounds/seat-requests.ts';
import type { Rounds } from './rounds/seat-rounds.ts';
import { createVerificationIds, type VerifyDependencies, verifyJoin } from './verify.ts';

export interface JoinDependencies extends VerifyDependencies, AnswerDependencies {
  namespaces: Namespaces;
  versions: Versions;
  captcha: Pick<Captcha, 'isRequired' | 'admit'>;
  cache: LobbyCache;
  rounds: Rounds;
  receipts: Receipts;
  address_classes: AddressClasses;
}

/** Returns a seat in the lobby that the request names, once the lobby is ready. A closed lobby can be joined. */
export async function join(
  dependencies: JoinDependencies,
  caller: CallerOf<'public'>,
  body: JoinBody,
  context: RequestContext,
): Promise<JoinAnswer> {
  const { namespaces, rounds, receipts, address_classes } = dependencies;
  const namespace = await requireNamespace(namespaces, caller.namespace_id);
  const { namespace_id, game_id } = namespace;
  return await receipts.withReceipt(
    () => toReceiptSubject(namespace, body, context),
    async (draft) => {
      const lobby = await lookUpLobby(dependencies, namespace, body);
      const { address, deadline } = context;
      const request: JoinRequest = {
        kind: 'join',
        ...createPlayerIds(body),
        game_id,
        namespace_id,
        lobby_id: lobby.lobby_id,
        address,
        client: limitedClientOf(namespace, address, address_classes),
        is_explained: draft.is_kept,
      };
      const seat = await preferStopped(dependencies, lobby, async () => {
        await checkJoin(dependencies, { lobby, namespace, body, context, draft });
        return await rounds.takeSeat(request, { draft, deadline });
      });
      return await answerWhenReady(dependencies, { seat, players: request, deadline, draft });
    },
  );
}

interface JoinInProgress {
  lobby: NamedLobby;
  namespace: NamespaceRow;
  body: JoinBody;
  context: RequestContext;
  draft: ReceiptDraft;
}

/** Checks a join against the version of the lobby's game mode, the captcha, and the game's own verification. */
async function checkJoin(
  dependencies: JoinDependencies,
  { lobby, namespace, body, context, draft }: JoinInProgress,
): Promise<void> {
  const { versions, captcha } = dependencies;
  const { game_id, namespace_id, version_id } = namespace;
  const modes = await versions.gameModes({ game_id, version_id: lobby.version_id });
  const mode = modes.get(lobby.game_mode);
  checkAction(mode?.join ?? { enabled: true }, 'MATCHMAKER_JOIN_DISABLED');
  const passCaptcha = createCaptchaGate(captcha, body, context, draft);
  await passCaptcha({ game_id, namespace_id, version_id });
  const nextVerificationId = createVerificationIds(context);
  const subject = { game_id, namespace_id, version_id, context, nextVerificationId, draft };
  await verifyJoin(dependencies, subject, { body, mode, lobby_id: lobby.lobby_id });
}

/** Returns the result of work on a lobby. If a cached lobby has stopped, that is the error to report, whatever else failed. */
async function preferStopped<Result>(
  { database }: JoinDependencies,
  lobby: NamedLobby,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (refusal) {
    const current = lobby.is_cached ? await store.selectLobby(database.queries, lobby.lobby_id) : undefined;
    throw current?.stop_ts ? lobbyStopped() : refusal;
  }
}

/** The lobby that a join names. */
type NamedLobby = Pick<LobbyRow, 'lobby_id' | 'version_id' | 'game_mode'> & {
  /** Whether it comes from this process's cache. Then it may have stopped meanwhile; the round checks that. */
  is_cached: boolean;
};

/** Returns the lobby of a join. Throws MATCHMAKER_LOBBY_NOT_FOUND or MATCHMAKER_LOBBY_STOPPED. */
async function lookUpLobby(
  { database, cache, captcha }: JoinDependencies,
  namespace: NamespaceRow,
  { lobby_id, code }: Pick<JoinBody, 'lobby_id' | 'code'>,
): Promise<NamedLobby> {
  const { namespace_id } = namespace;
  const cached = code === undefined && lobby_id !== undefined && cache.peek(namespace_id, lobby_id);
  // With a captcha, reads the lobby: a captcha counts once, so it must not be spent on a lobby that has stopped.
  if (cached && !(await captcha.isRequired(namespace))) return { ...cached, is_cached: true };
  const lobby =
    lobby_id === undefined
      ? await store.selectLobbyByCode(database.queries, namespace_id, normalizeCode(code ?? ''))
      : await store.selectLobby(database.queries, lobby_id);
  const is_known = lobby?.namespace_id === namespace_id && (code === undefined || lobby.code === normalizeCode(code));
  if (!is_known) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
  if (lobby.stop_ts) throw lobbyStopped();
  return { ...lobby, is_cached: false };
}

function toReceiptSubject(namespace: NamespaceRow, body: JoinBody, { ray_id }: RequestContext): ReceiptSubject {
  const { namespace_id, version_id } = namespace;
  const { lobby_id, players = 1 } = body;
  return { kind: 'join', ray_id, namespace_id, version_id, request: { ...omitUndefined({ lobby_id }), players } };
}

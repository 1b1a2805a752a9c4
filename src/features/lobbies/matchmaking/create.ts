import type { AddressClasses } from '../../../platform/address-classes.ts';
import { assert } from '../../../platform/errors.ts';
import { omitUndefined } from '../../../platform/omit-undefined.ts';
import type { CallerOf } from '../../../platform/tokens/caller.ts';
import type { Captcha } from '../../captcha/captcha.ts';
import type { NamespaceRow, Namespaces } from '../../namespaces/namespaces.ts';
import { overLimit } from '../refusals.ts';
import type { CreateBody, JoinAnswer } from '../wire.ts';
import { type AnswerDependencies, answerWhenReady } from './answer-when-ready.ts';
import { createCaptchaGate } from './captcha-gate.ts';
import { type ChoicesDependencies, listRegionsBestFirst } from './choices.ts';
import { limitedClientOf } from './client-limits.ts';
import { atCurrentVersion, requireNamespace } from './current-version.ts';
import type { CreatePlanned } from './new-lobbies/create-lobbies.ts';
import type { ReceiptSubject } from './receipts/receipt-draft.ts';
import type { Receipts } from './receipts/receipts.ts';
import { checkCreate, cutTags } from './request-checks.ts';
import type { RequestContext } from './request-context.ts';
import { createPlayerIds } from './rounds/seat-requests.ts';
import { toSeat } from './seat.ts';
import { createVerificationIds, type VerifyDependencies, verifyCreate } from './verify.ts';

export interface CreateDependencies extends ChoicesDependencies, VerifyDependencies, AnswerDependencies {
  namespaces: Namespaces;
  captcha: Pick<Captcha, 'isRequired' | 'admit'>;
  createPlanned: CreatePlanned;
  receipts: Receipts;
  address_classes: AddressClasses;
}

/** Creates a lobby for the player, and returns the seat in it once the lobby is ready. */
export async function create(
  dependencies: CreateDependencies,
  caller: CallerOf<'public'>,
  body: CreateBody,
  context: RequestContext,
): Promise<JoinAnswer> {
  const { namespaces, versions, datacenters, own_region, captcha, createPlanned, receipts, address_classes } =
    dependencies;
  const namespace = await requireNamespace(namespaces, caller.namespace_id);
  const { namespace_id, game_id } = namespace;
  return await receipts.withReceipt(
    () => toReceiptSubject(namespace, body, context),
    async (draft) => {
      const passCaptcha = createCaptchaGate(captcha, body, context, draft);
      const nextVerificationId = createVerificationIds(context);
      const current = await atCurrentVersion(namespaces, namespace, async ({ version_id }) => {
        draft.recordSearch(version_id, body.region === undefined ? undefined : [body.region]);
        const modes = await versions.gameModes({ game_id, version_id });
        const regions = listRegionsBestFirst(await datacenters.list(), own_region, body);
        const lobby = checkCreate(body, modes, regions);
        draft.recordSearch(version_id, [lobby.region]);
        await passCaptcha({ game_id, namespace_id, version_id });
        const subject = { game_id, namespace_id, version_id, context, nextVerificationId, draft };
        await verifyCreate(dependencies, subject, { body, lobby, mode: modes.get(lobby.game_mode) });
        return { game_id, namespace_id, version_id, lobby };
      });
      const { address, deadline } = context;
      if (deadline.is_over) throw deadline.toError();
      const players = {
        ...createPlayerIds(body),
        address,
        client: limitedClientOf(current.namespace, address, address_classes),
      };
      const [outcome] = await createPlanned([{ ...current.result, first_requests: [players] }]);
      assert(outcome && outcome.is !== 'not_needed', 'a lobby with players is created or refused');
      if (outcome.over_limit.length > 0) throw overLimit(players);
      if (outcome.is === 'refused') throw outcome.error;
      const seat = toSeat(outcome.lobby, true);
      return await answerWhenReady(dependencies, { seat, players: { ...players, namespace_id }, deadline, draft });
    },
  );
}

function toReceiptSubject(namespace: NamespaceRow, body: CreateBody, { ray_id }: RequestContext): ReceiptSubject {
  const { namespace_id, version_id } = namespace;
  const { game_mode, region, tags, max_players, publicity, players = 1 } = body;
  const regions = region === undefined ? undefined : [region];
  const request = {
    ...omitUndefined({ game_modes: [game_mode], regions, tags: tags && cutTags(tags), max_players, publicity }),
    players,
  };
  return { kind: 'create', ray_id, namespace_id, version_id, request };
}

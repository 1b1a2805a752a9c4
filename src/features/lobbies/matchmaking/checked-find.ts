import type { AddressClasses } from '../../../platform/address-classes.ts';
import type { Captcha } from '../../captcha/captcha.ts';
import type { NamespaceRow, Namespaces } from '../../namespaces/namespaces.ts';
import type { FindBody } from '../wire.ts';
import { createCaptchaGate, type PassCaptcha } from './captcha-gate.ts';
import { type ChoicesDependencies, listRegionsBestFirst } from './choices.ts';
import { limitedClientOf } from './client-limits.ts';
import { atCurrentVersion, requireNamespace } from './current-version.ts';
import type { ReceiptDraft } from './receipts/receipt-draft.ts';
import { planSearch, type Search } from './request-checks.ts';
import type { RequestContext } from './request-context.ts';
import type { FindRequest } from './rounds/seat-requests.ts';
import {
  createVerificationIds,
  type NextVerificationId,
  needsVerification,
  type VerifyDependencies,
  verifyFind,
} from './verify.ts';

export interface CheckedFindDependencies extends ChoicesDependencies, VerifyDependencies {
  namespaces: Namespaces;
  captcha: Pick<Captcha, 'isRequired' | 'admit'>;
  address_classes: AddressClasses;
}

/** A find as its player sent it. */
interface SentFind {
  namespace_id: string;
  players: Pick<FindRequest, 'player_id' | 'others'>;
  body: FindBody;
  context: RequestContext;
  /** Set if the find waits, when it gets no seat at once. */
  ticket: string | undefined;
  draft: ReceiptDraft;
}

/** A search, and the version against which it was checked. */
interface CheckedSearch {
  version_id: string;
  search: Search;
}

/** A find that is checked again whenever its namespace has moved to another version. */
export class CheckedFind {
  readonly #dependencies: CheckedFindDependencies;
  readonly #sent_find: SentFind;
  readonly #passCaptcha: PassCaptcha;
  readonly #nextVerificationId: NextVerificationId;
  #checked: CheckedSearch | undefined;

  constructor(dependencies: CheckedFindDependencies, sent_find: SentFind) {
    const { body, context, draft } = sent_find;
    this.#dependencies = dependencies;
    this.#sent_find = sent_find;
    this.#passCaptcha = createCaptchaGate(dependencies.captcha, body, context, draft);
    this.#nextVerificationId = createVerificationIds(context);
  }

  /** Returns the request for the next round. */
  async nextRequest(): Promise<FindRequest> {
    const { namespaces, address_classes } = this.#dependencies;
    const { namespace_id, players, context, draft } = this.#sent_find;
    let namespace = await requireNamespace(namespaces, namespace_id);
    let checked = this.#checked;
    if (checked?.version_id !== namespace.version_id) {
      const current = await atCurrentVersion(namespaces, namespace, (row) => this.#check(row));
      namespace = current.namespace;
      checked = current.result;
      this.#checked = checked;
    }
    return {
      kind: 'find',
      ...players,
      game_id: namespace.game_id,
      namespace_id,
      version_id: checked.version_id,
      search: checked.search,
      address: context.address,
      client: limitedClientOf(namespace, context.address, address_classes),
      lobby_count_max: namespace.lobby_count_max,
      is_explained: draft.is_kept,
    };
  }

  /** Checks the find against the namespace's version: its body, the captcha, and the game's own verification. */
  async #check({ game_id, namespace_id, version_id }: NamespaceRow): Promise<CheckedSearch> {
    const { versions, datacenters, own_region } = this.#dependencies;
    const { body, context, ticket, draft } = this.#sent_find;
    draft.recordSearch(version_id, body.regions);
    const modes = await versions.gameModes({ game_id, version_id });
    const regions = listRegionsBestFirst(await datacenters.list(), own_region, body);
    const search = planSearch(body, modes, regions);
    draft.recordSearch(version_id, search.regions);
    await this.#passCaptcha({ game_id, namespace_id, version_id });
    if (!needsVerification(search, modes)) return { version_id, search };
    const nextVerificationId = this.#nextVerificationId;
    const subject = { game_id, namespace_id, version_id, context, nextVerificationId, ticket, draft };
    return { version_id, search: await verifyFind(this.#dependencies, subject, { body, search, modes, regions }) };
  }
}

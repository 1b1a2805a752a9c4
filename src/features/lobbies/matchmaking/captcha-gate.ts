import { type MaybePromise, whenKnown } from '../../../platform/maybe-promise.ts';
import type { Captcha } from '../../captcha/captcha.ts';
import type { FindBody } from '../wire.ts';
import type { ReceiptDraft } from './receipt-draft.ts';
import type { RequestContext } from './request-context.ts';

/** Admits a request, or throws an error of `captcha.admit`. */
export type PassCaptcha = (namespace: {
  game_id: string;
  namespace_id: string;
  version_id: string;
}) => MaybePromise<void>;

/**
 * Returns the captcha check of one request. One solved captcha is enough for the request, even if its namespace moves to
 * another version meanwhile.
 */
export function createCaptchaGate(
  captcha: Pick<Captcha, 'admit'>,
  { captcha: solved }: Pick<FindBody, 'captcha'>,
  context: RequestContext,
  draft: ReceiptDraft | undefined,
): PassCaptcha {
  let has_passed = false;
  return (namespace) => {
    if (has_passed) return;
    draft?.recordStage('checked');
    let was_required = false;
    const admitting = captcha.admit(namespace, { ...context, captcha: solved }, (decision) => {
      was_required = true;
      draft?.recordDecision({ captcha: decision });
      draft?.recordStage('captcha');
    });
    return whenKnown(admitting, () => {
      has_passed = was_required;
    });
  };
}

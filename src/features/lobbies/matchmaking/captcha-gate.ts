import { ServiceError } from '../../../platform/errors.ts';
import { type MaybePromise, whenKnown } from '../../../platform/maybe-promise.ts';
import type { Captcha, NamespaceVersion } from '../../captcha/captcha.ts';
import type { CaptchaDecision } from '../../captcha/wire.ts';
import type { FindBody } from '../wire.ts';
import type { ReceiptDraft } from './receipts/receipt-draft.ts';
import type { RequestContext } from './request-context.ts';

/** Admits a request, or throws an error of `captcha.admit`. */
export type PassCaptcha = (namespace: NamespaceVersion) => MaybePromise<void>;

/**
 * Returns the captcha check of one request. One solved captcha is enough for the request, even if its namespace moves to
 * another version meanwhile.
 */
export function createCaptchaGate(
  captcha: Pick<Captcha, 'isRequired' | 'admit'>,
  { captcha: solved }: Pick<FindBody, 'captcha'>,
  context: RequestContext,
  draft: ReceiptDraft,
): PassCaptcha {
  let has_passed = false;

  async function check(namespace: NamespaceVersion): Promise<void> {
    const { address, deadline } = context;
    const request = { address, deadline, readOrigin: () => context.readOrigin(), captcha: solved };
    const record = (decision: CaptchaDecision) => {
      draft.recordDecision({ captcha: decision });
      draft.recordStage('captcha');
    };
    try {
      await captcha.admit(namespace, request, record);
    } catch (error) {
      const is_unchecked = error instanceof ServiceError && error.code === 'CAPTCHA_CAPTCHA_UNAVAILABLE';
      // The end of the request has cancelled the check, which is no failure of the provider.
      throw is_unchecked && deadline.is_over ? deadline.toError() : error;
    }
    has_passed = true;
  }

  return (namespace) => {
    if (has_passed) return;
    draft.recordStage('checked');
    return whenKnown(captcha.isRequired(namespace), (is_required) => (is_required ? check(namespace) : undefined));
  };
}

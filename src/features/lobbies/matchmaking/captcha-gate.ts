import type { Captcha } from '../../captcha/captcha.ts';
import type { FindBody } from '../wire.ts';
import type { Draft } from './receipt-draft.ts';
import type { RequestContext } from './request-context.ts';

/** Lets a request pass, or throws why it may not; see `captcha.admit`. */
export type PassCaptcha = (place: { game_id: string; namespace_id: string; version_id: string }) => Promise<void>;

/**
 * Returns the captcha check of one request. A captcha that was demanded and solved is enough for the request, however often
 * its namespace moves to another version.
 */
export function createCaptchaGate(
  captcha: Pick<Captcha, 'admit'>,
  { captcha: solved }: Pick<FindBody, 'captcha'>,
  context: RequestContext,
  draft: Draft | undefined,
): PassCaptcha {
  let is_solved = false;
  return async (place) => {
    if (is_solved) return;
    draft?.reach('checked');
    let was_demanded = false;
    await captcha.admit(place, { ...context, captcha: solved }, (decision) => {
      was_demanded = true;
      draft?.note({ captcha: decision });
      draft?.reach('captcha');
    });
    is_solved = was_demanded;
  };
}

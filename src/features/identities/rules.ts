import {
  type ContentProblem,
  DISPLAY_NAME_BYTES_MAX,
  displayNameProblem,
  isBio,
  type ProblemAdvice,
} from '../names.ts';

const ACCOUNT_NUMBER_MAX = 9_999;

export interface ProfileChange {
  display_name?: string | undefined;
  account_number?: number | undefined;
  bio?: string | undefined;
}

/** What to do about problems of a profile, apart from those of names. */
export const PROFILE_ADVICE: ProblemAdvice = new Map([['account-number.invalid', `0 to ${ACCOUNT_NUMBER_MAX}`]]);

/** Returns what is wrong with a change of a profile. */
export function profileProblems({ display_name, account_number, bio }: ProfileChange): ContentProblem[] {
  const name = display_name === undefined ? undefined : displayNameProblem(display_name, DISPLAY_NAME_BYTES_MAX);
  const is_number = account_number === undefined || (account_number >= 0 && account_number <= ACCOUNT_NUMBER_MAX);
  return [
    ...(name ? [['display-name', name]] : []),
    ...(is_number ? [] : [['account-number', 'invalid']]),
    ...(bio === undefined || isBio(bio) ? [] : [['bio', 'invalid']]),
  ].map((path) => ({ path }));
}

import { type ContentProblem, DISPLAY_NAME_BYTES_MAX, displayNameProblem, isBio } from '../names.ts';

export interface GroupChange {
  display_name?: string | undefined;
  bio?: string | undefined;
  publicity?: 'open' | 'closed' | undefined;
}

/** Returns what is wrong with a change of a group's profile. */
export function groupProblems({ display_name, bio }: GroupChange): ContentProblem[] {
  const name = display_name === undefined ? undefined : displayNameProblem(display_name, DISPLAY_NAME_BYTES_MAX);
  return [
    ...(name ? [['display-name', name]] : []),
    ...(bio === undefined || isBio(bio) ? [] : [['bio', 'invalid']]),
  ].map((path) => ({ path }));
}

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

/** The anchor of a page: when its last person was added, in Unix milliseconds, and the person's id. */
export function writeAnchor({ identity_id, ts }: { identity_id: string; ts: Date }): string {
  return `${ts.getTime()}.${identity_id}`;
}

/** Reads an anchor. That of an earlier release has only the id. */
export function readAnchor(anchor: string): { identity_id: string; ts: Date | undefined } {
  const [identity_id = '', milliseconds] = anchor.split('.').toReversed();
  return { identity_id, ts: milliseconds === undefined ? undefined : new Date(Number(milliseconds)) };
}

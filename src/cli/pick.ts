import { EXIT, Failure } from '../terminal/failure.ts';

/** Returns the entry of a list whose id begins or ends with a text. Throws Failure unless there is exactly one. */
export function pick<One>(list: readonly One[], given: string, idOf: (one: One) => string, what: string): One {
  const text = given.toLowerCase();
  const found = list.filter((one) => idOf(one).startsWith(text) || idOf(one).endsWith(text));
  const [first, ...others] = found;
  if (!first)
    throw new Failure(
      `The namespace has no ${what} "${given}". List them: muster lobbies, muster servers`,
      EXIT.not_found,
    );
  if (others.length > 0)
    throw new Failure(`"${given}" fits ${found.length} ids: write more of the id of the ${what}.`, EXIT.wrong_use);
  return first;
}

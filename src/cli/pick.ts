import { EXIT, Failure } from '../terminal/failure.ts';

interface Listed<One> {
  /** What the entries are, such as `lobby`. */
  what: string;
  idOf: (one: One) => string;
  /** The command that lists them. */
  list_command: string;
}

/** Returns the entry of a list whose id begins or ends with a text. Throws Failure unless there is exactly one. */
export function pick<One>(list: readonly One[], given: string, { what, idOf, list_command }: Listed<One>): One {
  const text = given.toLowerCase();
  const found = list.filter((one) => idOf(one).startsWith(text) || idOf(one).endsWith(text));
  const [first, ...others] = found;
  if (!first) throw new Failure(`The namespace has no ${what} "${given}". List them: ${list_command}`, EXIT.not_found);
  if (others.length > 0)
    throw new Failure(`"${given}" fits ${found.length} ids: write more of the id of the ${what}.`, EXIT.wrong_use);
  return first;
}

/** Something that the palette offers. */
export interface Command {
  /** The same for the same command whenever the list is made anew. */
  id: string;
  /** The text that is shown, and by which it is found. */
  text: string;
  /** What kind of thing it is. */
  kind: string;
  run(): void;
}

/** Offers at a time, so that a long list stays quick. */
const OFFERED_MAX = 30;

/** Returns the commands that have every word of a query, those that begin with it first. */
export function selectCommands(commands: Command[], query: string): Command[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const joined = words.join('');
  const found = commands.flatMap((command) => {
    const text = plain(`${command.text} ${command.kind}`);
    return words.every((word) => text.includes(plain(word)))
      ? [{ command, is_first: text.startsWith(plain(joined)) }]
      : [];
  });
  return found
    .sort((one, other) => Number(other.is_first) - Number(one.is_first))
    .slice(0, OFFERED_MAX)
    .map(({ command }) => command);
}

/** "Roll back" is found by "rollback", and "prod-2" by "prod 2". */
function plain(text: string): string {
  return text.toLowerCase().replaceAll(/[\s-]/g, '');
}

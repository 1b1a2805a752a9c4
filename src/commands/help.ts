import { createProgram, GROUPS, runClient } from '../cli/program.ts';
import { VERSION } from '../platform/version.ts';
import { Settings } from '../settings.ts';
import { listUsages, usageOf } from './usages.ts';

const [HEADING, USAGE] = [`Muster ${VERSION}: hosts multiplayer games.`, 'Usage: muster [command], by default serve'];
type List = [heading: string, lines: [usage: string, text: string][]];
const OPTIONS: List = [
  'Options:',
  [
    ['--help', 'prints this help; "muster help COMMAND" that of a command'],
    ['--version', 'prints the version'],
    ['--json', 'writes JSON instead of sentences, also if a command fails'],
  ],
];
const SETTINGS = 'Settings of serve, dev, migrate, backup, restore, upgrade and in part test, from the environment:';

const WIDTH = 96;
const INDENT = ' '.repeat(Math.max(...Object.keys(Settings.properties).map(({ length }) => length)) + 4);

/** Prints the commands and all settings, or the help of one command. Returns the exit code. */
export async function help([name = '', ...rest]: string[], machine_commands: readonly string[]): Promise<number> {
  const usage = usageOf(name);
  if (usage !== undefined) {
    console.log(usage);
    return 0;
  }
  if (name !== '' && !name.startsWith('-') && !machine_commands.includes(name)) {
    const is_known = createProgram().commands.some((command) => command.name() === name);
    return await runClient(is_known ? [name, ...rest, '--help'] : [name], machine_commands);
  }
  console.log(`${HEADING}\n\n${USAGE}`);
  const lists: List[] = [...listClientCommands(), ['The machine of a service:', listUsages()], OPTIONS];
  const width = Math.max(...lists.flatMap(([, lines]) => lines.map(([usage]) => usage.length)));
  for (const [heading, lines] of lists) {
    console.log(`\n${heading}`);
    for (const [usage, text] of lines) console.log(`  ${usage.padEnd(width)}  ${text}`);
  }
  console.log(`\n${SETTINGS}`);
  for (const [name, { description = '', default: fallback }] of Object.entries(Settings.properties)) {
    const text = fallback === undefined ? description : `${description} Default: ${fallback}.`;
    const [first = '', ...others] = wrap(text, WIDTH - INDENT.length);
    console.log(`  ${name.padEnd(INDENT.length - 2)}${first}`);
    for (const line of others) console.log(`${INDENT}${line}`);
  }
  return 0;
}

/** Returns the commands that talk to a service, in their groups. */
function listClientCommands(): List[] {
  const { commands } = createProgram();
  return Object.values(GROUPS).map((heading) => [
    heading,
    commands
      .filter((command) => command.helpGroup() === heading)
      .map((command) => [command.name(), command.description()]),
  ]);
}

function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}

import { VERSION } from '../platform/version.ts';
import { Settings } from '../settings.ts';

const COMMANDS = `Muster ${VERSION}: hosts multiplayer games.

Usage: muster [command]

  serve     starts the service (the default)
  migrate   updates the database to this release, then exits
  openapi   prints the API document (OpenAPI 3.1)
  version   prints the version
  --help    prints this help

Settings, from the environment:
`;

const WIDTH = 96;
const INDENT = ' '.repeat(Math.max(...Object.keys(Settings.properties).map(({ length }) => length)) + 4);

/** Prints the commands and all settings. */
export async function help(): Promise<number> {
  console.log(COMMANDS);
  for (const [name, { description = '', default: fallback }] of Object.entries(Settings.properties)) {
    const text = fallback === undefined ? description : `${description} Default: ${fallback}.`;
    const [first = '', ...others] = wrap(text, WIDTH - INDENT.length);
    console.log(`  ${name.padEnd(INDENT.length - 2)}${first}`);
    for (const line of others) console.log(`${INDENT}${line}`);
  }
  return 0;
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

import { StartError } from '../platform/errors.ts';
import { help } from './help.ts';
import { migrate } from './migrate.ts';
import { openapi } from './openapi.ts';
import { serve } from './serve.ts';
import { version } from './version.ts';

/** The commands of the executable, by name. Each gives the exit code. */
const COMMANDS = new Map(Object.entries({ serve, migrate, openapi, version, help }));
const FLAGS = new Map(Object.entries({ '--help': 'help', '-h': 'help', '--version': 'version', '-v': 'version' }));

/** Runs what the command line asks for, `serve` when it asks for nothing. Gives the exit code. */
export async function runCommand([name = 'serve', ...rest]: string[]): Promise<number> {
  const wanted = FLAGS.get(name) ?? name;
  if (rest.includes('--help') || rest.includes('-h')) return await help();
  const command = COMMANDS.get(wanted);
  if (!command || rest.length > 0) {
    const what = command ? `"${wanted}" takes no "${rest[0]}"` : `There is no command "${name}"`;
    console.error(`${what}: settings come from the environment, and "muster --help" lists everything.`);
    return 2;
  }
  try {
    return await command();
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    console.error(error.message);
    return 1;
  }
}

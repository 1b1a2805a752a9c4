import { StartError } from '../platform/errors.ts';
import { help } from './help.ts';
import { migrate } from './migrate.ts';
import { openapi } from './openapi.ts';
import { serve } from './serve.ts';
import { version } from './version.ts';

/** The commands of the executable, by name. Each returns the exit code. */
const COMMANDS = new Map(Object.entries({ serve, migrate, openapi, version, help }));
const FLAGS = new Map(Object.entries({ '--help': 'help', '-h': 'help', '--version': 'version', '-v': 'version' }));

/** Runs the command of the command line, `serve` by default. Returns the exit code. */
export async function runCommand([name = 'serve', ...rest]: string[]): Promise<number> {
  const wanted = FLAGS.get(name) ?? name;
  if (rest.includes('--help') || rest.includes('-h')) return await help();
  const command = COMMANDS.get(wanted);
  if (!command || rest.length > 0) {
    const problem = command
      ? `The command "${wanted}" takes no arguments, but got "${rest[0]}"`
      : `There is no command "${name}"`;
    console.error(`${problem}: settings come from the environment; "muster --help" lists all commands and settings.`);
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

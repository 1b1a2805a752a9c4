import { runCommand } from './commands/commands.ts';

process.exit(await runCommand(process.argv.slice(2)));

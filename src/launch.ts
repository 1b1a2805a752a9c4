import { launchOrdered } from './commands/launch.ts';

// A program of its own, because the start of every game server waits for it.
process.exit(launchOrdered());

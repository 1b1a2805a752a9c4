const command = process.argv.slice(2);
if (command[0] === 'launch') {
  // Imports nothing else, because the start of every game server waits for it.
  const { launchOrdered } = await import('./commands/launch.ts');
  process.exit(launchOrdered());
}
const { runCommand } = await import('./commands/commands.ts');
process.exit(await runCommand(command));

// A module without imports of its own.
export {};

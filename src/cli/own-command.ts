/** Returns the command that runs this program. */
export function ownCommand(): string[] {
  return Bun.isStandaloneExecutable ? [process.execPath] : [process.execPath, ...process.execArgv, Bun.main];
}

/** Returns the command that runs this program. */
export function ownCommand(): string[] {
  return Bun.isStandaloneExecutable ? [process.execPath] : [process.execPath, ...process.execArgv, Bun.main];
}

/** The command of the service of `muster dev`, and used by it only. */
export const DEV_SERVICE_COMMAND = 'dev-service';

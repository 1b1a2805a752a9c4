/** Returns why a command that runs a service cannot run on this system; undefined where it can. */
export function whyNoServiceHere(command: string): string | undefined {
  if (process.platform === 'linux') return undefined;
  return `"muster ${command}" runs a service on this machine, which needs Linux, or WSL2 on Windows. Commands for a service on another machine work here: muster login ADDRESS`;
}

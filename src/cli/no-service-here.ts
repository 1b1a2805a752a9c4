/** Returns why a command for the machine of a service cannot run on this system; undefined where it can. */
export function whyNoServiceHere(command: string): string | undefined {
  if (process.platform === 'linux') return undefined;
  return `"muster ${command}" needs a machine that can run a service: Linux, or WSL2 on Windows. Commands for a service on another machine work here: muster login ADDRESS`;
}

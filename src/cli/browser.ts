import { environmentWith } from './environment.ts';

/** The program that opens links, by platform. */
const OPENERS: Partial<Record<NodeJS.Platform, string[]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};
const OPENER_DEFAULT = ['xdg-open'];

/** Opens a page in the browser of the desktop. Returns false if this machine has no program for that. */
export function openBrowser(url: string): boolean {
  const [program = '', ...args] = OPENERS[process.platform] ?? OPENER_DEFAULT;
  if (!Bun.which(program)) return false;
  const silent = { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' } as const;
  Bun.spawn([program, ...args, url], { env: environmentWith(), ...silent }).unref();
  return true;
}

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { defaultDataDirectory, SYSTEM_DATA_DIRECTORY } from '../default-data-directory.ts';
import { detectPreview, PREVIEW_SERVER_PORTS } from './dev/preview.ts';

const PORT_DEFAULT = '8080';
const HTTPS_PORT_DEFAULT = '443';
/** The hosts by which addresses name this machine. */
export const LOOPBACK = ['localhost', '127.0.0.1', '::1'];

/** What commands that talk to a service take from the environment. None of their other files reads it. */
export const environment = {
  url: read('MUSTER_URL'),
  token: read('MUSTER_TOKEN'),
  game: read('MUSTER_GAME'),
  namespace: read('MUSTER_NAMESPACE'),
  /** Whether the service is that of `muster test`, which is gone before anyone could act on an advice about it. */
  is_throwaway: read('MUSTER_TEST_CLOCK') !== undefined,
  /** The address of the service that `muster serve` starts here. */
  local_url: `http://127.0.0.1:${read('MUSTER_PORT') ?? PORT_DEFAULT}`,
  /** Its address by https, if it has a certificate. */
  local_https_url: `https://127.0.0.1:${read('MUSTER_HTTPS_PORT') ?? HTTPS_PORT_DEFAULT}`,
  /** This machine, if it is a preview. */
  preview: detectPreview(read),
  /** The ports of game servers if a command starts a service in a preview. */
  preview_server_ports: read('MUSTER_SERVER_PORTS') ?? PREVIEW_SERVER_PORTS,
  /** The data directory of a service that a command starts. */
  data_directory: read('MUSTER_DATA') ?? defaultDataDirectory(process.cwd()),
  /** Returns the environment of a service that a command starts: this one, with defaults for missing and empty variables. */
  forService: (defaults: Record<string, string>): NodeJS.ProcessEnv => ({
    ...process.env,
    ...Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, read(name) ?? value])),
  }),
  /** Where this machine's service may have its data directory. */
  data_directories: [
    ...new Set([resolve(read('MUSTER_DATA') ?? 'muster-data'), resolve('muster-data'), SYSTEM_DATA_DIRECTORY]),
  ],
  /** The directory of this user's configuration (XDG Base Directory Specification). */
  config_directory: join(read('XDG_CONFIG_HOME') ?? join(homedir(), '.config'), 'muster'),
};

excludeLoopback();

// Programs that commands start, such as docker or a browser, do not get the token. Bun.spawn gives them this only if asked.
delete process.env.MUSTER_TOKEN;

/**
 * Keeps requests to this machine off a proxy of the environment, which would send them to its own machine, with the
 * administrator's token. An empty NO_PROXY sends all requests through the proxy.
 */
function excludeLoopback(): void {
  // fetch reads only one of them, and NO_PROXY only if the other is missing or empty.
  const name = process.env.no_proxy ? 'no_proxy' : 'NO_PROXY';
  const given = process.env[name];
  if (given === '') return;
  process.env[name] = [...(given === undefined ? [] : [given]), ...LOOPBACK].join(',');
}

/** Returns a variable; undefined also for an empty one. */
function read(name: string): string | undefined {
  return process.env[name] || undefined;
}

/** Returns the environment of a program that a command starts: this one, with variables that replace its own. */
export function environmentWith(variables: Record<string, string> = {}): Record<string, string | undefined> {
  return { ...process.env, ...variables };
}

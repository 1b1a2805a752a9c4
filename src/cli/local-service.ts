import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { TOKEN_FILE } from '../shared/left-out.ts';
import { environment, LOOPBACK } from './environment.ts';
import { hostOf, portOf } from './url-parts.ts';

/** The token of an administrator, and the file of a data directory that has it. */
interface LocalToken {
  token: string;
  file: string;
}

/**
 * Returns the administrator's tokens in the data directories of this machine that this user may read. Those of services that
 * no longer run may be among them.
 */
export function readLocalTokens(): LocalToken[] {
  return environment.data_directories.flatMap((directory) => {
    const file = join(directory, TOKEN_FILE);
    if (!existsSync(file)) return [];
    try {
      return [{ token: readFileSync(file, 'utf8').trim(), file }];
    } catch {
      // Only another user may read it.
      return [];
    }
  });
}

/** The certificate of the authority with which a service signs its own, with MUSTER_TLS_LOCAL. */
const AUTHORITY_FILE = 'local-ca.pem';

/** Returns which certificates to trust: of this machine, also those that its services have signed themselves. */
export function trustFor(url: URL): { ca?: string[] } {
  const authorities = url.protocol === 'https:' && isLoopback(url) ? readLocalAuthorities() : [];
  return authorities.length === 0 ? {} : { ca: [...rootCertificates, ...authorities] };
}

function readLocalAuthorities(): string[] {
  return environment.data_directories.flatMap((directory) => {
    try {
      return [readFileSync(join(directory, AUTHORITY_FILE), 'utf8')];
    } catch {
      // There is none, or only another user may read it.
      return [];
    }
  });
}

/** Returns whether an address is that of the service that `muster serve` starts here. */
export function isLocalService(url: string): boolean {
  return [environment.local_url, environment.local_https_url].some((local) => isSameService(url, local));
}

/** Returns whether two addresses are of one service: they are equal, or the same port of this machine. */
export function isSameService(one: string, other: string): boolean {
  if (one === other) return true;
  if (!URL.canParse(one) || !URL.canParse(other)) return false;
  const [here, there] = [new URL(one), new URL(other)];
  const is_equal =
    here.protocol === there.protocol && portOf(here) === portOf(there) && here.pathname === there.pathname;
  return is_equal && isLoopback(here) && isLoopback(there);
}

/** Returns whether an address is of this machine. */
function isLoopback(url: URL): boolean {
  return LOOPBACK.includes(hostOf(url));
}

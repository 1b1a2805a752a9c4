import { readFileSync } from 'node:fs';

/** Returns the address at which relays listen: all addresses of the machine, unless its host is a loopback one. */
export function listenAddressOf(server_host: string): string {
  if (server_host === '::1') return server_host;
  if (server_host === 'localhost' || server_host.startsWith('127.')) return '127.0.0.1';
  return hasIpv6() ? '::' : '0.0.0.0';
}

function hasIpv6(): boolean {
  try {
    return readFileSync('/proc/net/if_inet6', 'utf8') !== '';
  } catch {
    return false;
  }
}

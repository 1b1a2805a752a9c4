import { StartError } from './platform/errors.ts';

interface Names {
  servers_domain: string;
  sites_domain: string;
  public_url: string;
  /** Further host names of the API. */
  own_hosts: readonly string[];
}

/** Throws StartError if requests to the API or to sites would be read as requests to game servers, by their host. */
export function assertServersDomain({ servers_domain, sites_domain, public_url, own_hosts }: Names): void {
  const domain = servers_domain.toLowerCase();
  const isBelow = (host: string) => host.toLowerCase().endsWith(`.${domain}`);
  const advice = 'Give game servers a domain of their own, such as games.example.com.';
  const api = [new URL(public_url).hostname, ...own_hosts].find(isBelow);
  if (api !== undefined) {
    throw new StartError(
      `MUSTER_SERVERS_DOMAIN is "${servers_domain}", so the host of the API, ${api}, would be the name of a game server. ${advice}`,
    );
  }
  if (sites_domain.toLowerCase() === domain || isBelow(sites_domain)) {
    throw new StartError(
      `MUSTER_SERVERS_DOMAIN is "${servers_domain}", so sites below MUSTER_SITES_DOMAIN (${sites_domain}) would be names of game servers. ${advice}`,
    );
  }
}

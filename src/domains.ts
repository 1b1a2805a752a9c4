import { StartError } from './platform/errors.ts';

interface Names {
  servers_domain: string;
  sites_domain: string;
  public_url: string;
  /** Further host names of the API. */
  own_hosts: readonly string[];
}

/** Throws StartError if the domain of game servers or that of sites has names that belong to something else. */
export function assertDomains({ servers_domain, sites_domain, public_url, own_hosts }: Names): void {
  const api_hosts = [new URL(public_url).hostname, ...own_hosts];
  assertServersDomain({ servers_domain, sites_domain, api_hosts });
  assertSitesDomain({ sites_domain, api_hosts });
}

/** Requests to the API or to sites must not be read as requests to game servers, by their host. */
function assertServersDomain({
  servers_domain,
  sites_domain,
  api_hosts,
}: {
  servers_domain: string;
  sites_domain: string;
  api_hosts: string[];
}): void {
  const advice = 'Give game servers a domain of their own, such as games.example.com.';
  const api = api_hosts.find((host) => isBelow(host, servers_domain));
  if (api !== undefined) {
    throw new StartError(
      `MUSTER_SERVERS_DOMAIN is "${servers_domain}", so the host of the API, ${api}, would be the name of a game server. ${advice}`,
    );
  }
  if (isWithin(sites_domain, servers_domain)) {
    throw new StartError(
      `MUSTER_SERVERS_DOMAIN is "${servers_domain}", so sites below MUSTER_SITES_DOMAIN (${sites_domain}) would be names of game servers. ${advice}`,
    );
  }
}

/** A site's name is chosen by its developer, and its pages can set cookies for all hosts of the domain. */
function assertSitesDomain({ sites_domain, api_hosts }: { sites_domain: string; api_hosts: string[] }): void {
  const api = api_hosts.find((host) => isWithin(host, sites_domain));
  if (api === undefined) return;
  throw new StartError(
    `MUSTER_SITES_DOMAIN is "${sites_domain}", which includes the host of the API, ${api}: uploaded pages could set its cookies. Give sites a domain of their own, such as sites.example.com.`,
  );
}

function isWithin(host: string, domain: string): boolean {
  return host.toLowerCase() === domain.toLowerCase() || isBelow(host, domain);
}

function isBelow(host: string, domain: string): boolean {
  return host.toLowerCase().endsWith(`.${domain.toLowerCase()}`);
}

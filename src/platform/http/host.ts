/** The host that a request names: an address of the service itself, another host, or none that could be meant. */
export type RequestedHost = 'own' | 'other' | 'invalid';

/** Creates the function that reads the host of a request. `own_urls`: the addresses of the service itself. */
export function createHostReader(own_urls: string[]): (request: Request) => RequestedHost {
  const hosts = new Set(own_urls.map((url) => new URL(url).host));
  // A proxy in front of the service speaks HTTP to it, whatever its own clients speak.
  const own_origins = [...hosts].flatMap((host) => [`http://${host}/`, `https://${host}/`]);
  return (request) => {
    const { url } = request;
    if (hasSeveralHosts(request)) return 'invalid';
    if (own_origins.some((origin) => url.startsWith(origin))) return 'own';
    // Without a usable header Host, the URL is not a whole one.
    return url.startsWith('http') && URL.canParse(url) ? 'other' : 'invalid';
  };
}

/** Returns whether there are several headers Host: a proxy may have read another one than this service does. */
function hasSeveralHosts({ headers }: Request): boolean {
  return headers.get('host')?.includes(',') ?? false;
}

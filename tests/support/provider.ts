/** A verification request that a game's own server received. */
export interface ProviderRequest {
  method: string;
  path: string;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into all of it.
  body: any;
}

/** A game's own server, which verifies players. */
export interface Provider extends AsyncDisposable {
  url: string;
  /** The entry for MUSTER_OUTBOUND_ALLOW, because the server is not on the Internet. */
  allow: string;
  /** The received requests, in order. */
  requests: ProviderRequest[];
  /** Returns its answer. Accepts every request until a test replaces it. */
  answer: (request: ProviderRequest) => Response | Promise<Response>;
}

export function openProvider(): Provider {
  const requests: ProviderRequest[] = [];
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const text = await request.text();
      const { pathname, search } = new URL(request.url);
      const received = {
        method: request.method,
        path: pathname + search,
        headers: request.headers,
        text,
        body: JSON.parse(text),
      };
      requests.push(received);
      return await provider.answer(received);
    },
  });
  const provider: Provider = {
    url: `http://127.0.0.1:${server.port}/verify`,
    allow: `127.0.0.1:${server.port}`,
    requests,
    answer: () => new Response(null, { status: 204 }),
    [Symbol.asyncDispose]: async () => void (await server.stop(true)),
  };
  return provider;
}

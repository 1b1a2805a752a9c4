import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';

interface ForwardProxyOptions {
  /** Returns what the proxy answers itself; undefined for a request to pass on. */
  answerFor?(request: { method: string; path: string }): OwnAnswer | undefined;
}

/** An answer of the proxy itself, or none at all. */
type OwnAnswer = { status: number; body: string } | 'no answer';

/** A proxy for http, as a command finds it in HTTP_PROXY. It can hold uploads back. */
export interface ForwardProxy extends AsyncDisposable {
  url: string;
  /** Uploads of parts that were answered. */
  readonly upload_count: number;
  /** Uploads of parts that are held back. */
  readonly held_count: number;
  /** Answers this many more uploads, and holds back all others. */
  holdUploadsAfter(count: number): void;
  /** Holds nothing back any more. What was held stays so. */
  release(): void;
  /** Answers what is held back with 503. */
  refuseHeld(): void;
}

export async function openForwardProxy({ answerFor }: ForwardProxyOptions = {}): Promise<ForwardProxy> {
  let upload_count = 0;
  const held = new Set<ServerResponse>();
  let let_through = Number.POSITIVE_INFINITY;

  function forward(near: IncomingMessage, answer: ServerResponse): void {
    const { method = '', url = '' } = near;
    // The answer may be sent before the whole request has arrived. Such a connection cannot be used again.
    answer.setHeader('connection', 'close');
    const own_answer = answerFor?.({ method, path: new URL(url).pathname });
    if (own_answer !== undefined) {
      near.resume();
      if (own_answer === 'no answer') return;
      answer.writeHead(own_answer.status, { 'content-type': 'application/json' }).end(own_answer.body);
      return;
    }
    const is_upload = method === 'PUT' && url.includes('/uploads/');
    if (is_upload && let_through <= 0) {
      held.add(answer);
      near.resume();
      return;
    }
    if (is_upload) let_through -= 1;
    const far = request(url, { method, headers: near.headers }, (response) => {
      if (is_upload && response.statusCode === 200) upload_count += 1;
      answer.writeHead(response.statusCode ?? 502, { ...response.headers, connection: 'close' });
      response.pipe(answer);
    });
    far.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end()));
    near.pipe(far);
  }

  const server = createServer(forward);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy listens at no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    get upload_count() {
      return upload_count;
    },
    get held_count() {
      return held.size;
    },
    holdUploadsAfter(count) {
      let_through = count;
    },
    release() {
      let_through = Number.POSITIVE_INFINITY;
    },
    refuseHeld() {
      for (const answer of held) answer.writeHead(503).end();
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Returns settings with which all requests go through a proxy, also those to this machine. */
export function through({ url }: Pick<ForwardProxy, 'url'>) {
  return { HTTP_PROXY: url, NO_PROXY: '' };
}

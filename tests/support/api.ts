/** An answer, with its body parsed if it is JSON. */
export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape.
  body: any;
  headers: Headers;
}

interface RequestOptions {
  token?: string | undefined;
  /** Sent as JSON; a string as it is. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export type Api = ReturnType<typeof createApi>;

/** Talks to a service over HTTP, as a client that knows nothing of its code. */
export function createApi(base_url: string) {
  async function call(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const { token, body, headers, signal } = options;
    const response = await fetch(path.startsWith('http') ? path : `${base_url}${path}`, {
      method,
      headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
    const text = await response.text();
    return { status: response.status, body: parse(text), headers: response.headers };
  }

  /** The body of an answer that must be a success. */
  async function expectOk(method: string, path: string, options?: RequestOptions): Promise<Answer['body']> {
    const answer = await call(method, path, options);
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  return {
    base_url,
    call,
    get: (path: string, token?: string) => call('GET', path, { token }),
    post: (path: string, token: string | undefined, body: unknown = {}) => call('POST', path, { token, body }),
    put: (path: string, token: string | undefined, body: unknown) => call('PUT', path, { token, body }),
    ok: expectOk,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

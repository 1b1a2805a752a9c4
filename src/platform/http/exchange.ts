import { isFault, ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import type { Caller } from '../tokens/caller.ts';
import type { Addresses, PeerServer } from './addresses.ts';
import { errorResponse, toCallersError } from './answers.ts';
import { hasBody, isBodyLeft } from './body.ts';
import { noteRequest, noteRequestEnd } from './ports/connections-in-use.ts';
import type { ReceivingServers } from './ports/receiving-servers.ts';
import type { Rays } from './rays.ts';
import { Deadline, type DeadlineOptions } from './request-deadline.ts';

/** Shown in the log instead of a route, for requests that no route answers. */
export const NO_ROUTE = '-';

/** What all exchanges use. */
export interface ExchangeServices {
  addresses: Addresses;
  rays: Rays;
  events: Events;
  public_url: string;
  deadlines: DeadlineOptions;
  receiving_servers: ReceivingServers<PeerServer>;
}

/**
 * Lets `work` answer a request, and returns the response: that of the work, or the error for its failure. `route` is its
 * pattern, for the log.
 */
export type Answerer = (
  request: Request,
  route: string,
  work: (exchange: Exchange) => Promise<Response>,
) => Promise<Response>;

export function createAnswerer(services: ExchangeServices): Answerer {
  return (request, route, work) =>
    new Promise((resolve) => {
      const exchange = new Exchange(services, { request, route, resolve });
      work(exchange).then(
        (response) => exchange.send(response),
        (failure) => exchange.fail(failure),
      );
    });
}

interface Received {
  request: Request;
  route: string;
  resolve(response: Response | Promise<Response>): void;
}

/** A request and its answer, from arrival to response. The first answer counts; later ones are dropped. */
export class Exchange {
  readonly request: Request;
  /** The server that received the request. */
  readonly server: PeerServer | null;
  readonly ray_id = Bun.randomUUIDv7();
  /** Headers to add to the answer, whatever it is. */
  readonly headers: Record<string, string> = {};
  /** Undefined before authentication. */
  caller: Caller | undefined;
  readonly deadline: Deadline;
  /** Whether the body was read to its end, so that the connection can carry the next request. */
  has_read_body = false;
  is_answered = false;
  readonly #services: ExchangeServices;
  readonly #route: string;
  readonly #resolve: (response: Response | Promise<Response>) => void;
  readonly #started_at = performance.now();
  readonly #noted: ReturnType<typeof noteRequest>;
  #address: string | undefined;

  constructor(services: ExchangeServices, { request, route, resolve }: Received) {
    const server = services.receiving_servers.of(request);
    this.request = request;
    this.server = server;
    this.#services = services;
    this.#route = route;
    this.#resolve = resolve;
    this.deadline = new Deadline(this, services.deadlines);
    this.#noted = noteRequest(request, server);
  }

  /** Whether the client uses https. */
  get is_https(): boolean {
    return this.#services.addresses.isHttps(this.request, this.server);
  }

  /** Whether the request seems to come from an untrusted proxy, whose clients all have its address. */
  get is_of_untrusted_proxy(): boolean {
    return this.#services.addresses.isOfUntrustedProxy(this.request, this.server);
  }

  /** The client's address. Looked up on first use, because that takes a system call. */
  get address(): string {
    this.#address ??= this.#services.addresses.clientOf(this.request, this.server);
    return this.#address;
  }

  /** Answers the request. The body of an answer that comes too late is cancelled, so that what it reads is closed. */
  send(response: Response): void {
    if (this.is_answered) return void response.body?.cancel().catch(() => {});
    this.is_answered = true;
    const { request, ray_id, caller } = this;
    const { method } = request;
    const route = this.#route;
    noteRequestEnd(this.#noted);
    this.deadline.cancel();
    const duration_ms = Math.round(performance.now() - this.#started_at);
    this.#services.rays.note({ ray_id, method, route, finished_at: Date.now(), duration_ms, caller });
    const { status } = response;
    this.#services.events.emit({ event: 'request_served', ray_id, method, route, status, duration_ms });
    response.headers.set('rvt-ray-id', ray_id);
    for (const name in this.headers) response.headers.set(name, this.headers[name] ?? '');
    if (method === 'HEAD') response.headers.set('date', new Date().toUTCString());
    this.#resolve(this.has_read_body || !hasBody(request) ? response : closeIfBodyIsLeft(request, response));
  }

  /** Answers the request with an error. Logs it if the service is at fault. */
  fail(failure: unknown): void {
    if (this.is_answered) return;
    const { request, ray_id } = this;
    const { events, public_url } = this.#services;
    // What the client's departure ends, such as the read of the body, fails with AbortError.
    const is_cut = request.signal.aborted && failure instanceof DOMException && failure.name === 'AbortError';
    const error = is_cut ? new ServiceError('API_CLIENT_GONE', {}) : toCallersError(failure);
    if (isFault(error)) {
      const { method } = request;
      events.emit({ event: 'request_failed', ray_id, method, route: this.#route, cause: error.cause });
    }
    this.send(errorResponse(error, { ray_id, public_url }));
  }
}

/** Closes the connection after the answer if the body was not read: a client that sends it slowly would hold the connection. */
async function closeIfBodyIsLeft(request: Request, response: Response): Promise<Response> {
  if (await isBodyLeft(request)) response.headers.set('connection', 'close');
  return response;
}

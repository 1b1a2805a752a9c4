import { isIP } from 'node:net';
import { dns } from 'bun';
import { orAborted } from '../timeouts.ts';
import {
  type Endpoint,
  isOwnAddress,
  isPublicAddress,
  isUsualPort,
  parseAllowList,
  portOf,
  toBareHost,
} from './addresses.ts';
import { type BulkheadLimits, createBulkheads, type Destination } from './bulkheads.ts';
import { OutboundFailure } from './failure.ts';
import { type OutboundAnswer, sendPost } from './send-post.ts';

export type { Destination } from './bulkheads.ts';
export { type FailureKind, OutboundFailure } from './failure.ts';
export type { OutboundAnswer } from './send-post.ts';

/** If a request's turn comes after this share of its time, a timeout is not the target's fault. */
const LATE_TURN = 0.5;

export interface OutboundOptions {
  /** Private targets that are allowed: networks (`10.1.0.0/16`), addresses and hosts, with or without a port. */
  allowed_private: readonly string[];
  /** Resolves a host name. Default: the resolver of the operating system. */
  resolve?: (host: string) => Promise<string[]>;
  /** Returns whether an address belongs to this machine. Default: asks the operating system. */
  isOwn?: (address: string) => boolean;
  /** In PEM. Default: the certificate authorities of the system. */
  certificate_authorities?: string;
  bulkhead_limits?: BulkheadLimits;
  /** Called when a target failed too often and gets no requests for a while. */
  onBreak?: (destination: Destination) => void;
}

export interface OutboundRequest {
  /** Without headers of the connection, such as Host. No Content-Type is added. */
  headers: Record<string, string>;
  body: string;
  /** For the whole request: waiting for a turn, resolving, connecting, TLS, and reading the answer. */
  timeout_ms: number;
  /** An answer with a longer body is broken. With 0 the body is not read, and `text` is empty. */
  answer_bytes_max: number;
  signal?: AbortSignal;
  /** Set if the URL comes from the operator's settings. Then it may be private. */
  trusts_target?: boolean;
  /** The account whose share of the connections the request uses. */
  account?: string;
}

export type Outbound = ReturnType<typeof createOutbound>;

/**
 * Creates the sender of requests to URLs that developers have chosen. A developer may want to attack services that only
 * this machine can reach, or to keep this machine busy. So each request resolves its name again, all addresses of the
 * name must be on the Internet, and the connection goes to one of them and is not reused. Redirects are not followed,
 * and answers are not decompressed. Throws RangeError for an invalid `allowed_private`.
 */
export function createOutbound(options: OutboundOptions) {
  const { resolve = resolveBySystem, isOwn = isOwnAddress, certificate_authorities } = options;
  const allowed = parseAllowList(options.allowed_private);
  const pass = createBulkheads(options.bulkhead_limits, options.onBreak);

  function mayConnect(endpoint: Endpoint): boolean {
    if (allowed.allows(endpoint)) return true;
    const { address, port } = endpoint;
    return isPublicAddress(address) && isUsualPort(port) && !isOwn(address);
  }

  /** Returns the addresses of a target if all of them may be connected to. */
  async function findAddresses(url: URL, trusts_target: boolean): Promise<string[]> {
    const host = toBareHost(url.hostname);
    const addresses = isIP(host) === 0 ? await resolveName(host) : [host];
    const isAllowed = (address: string) => trusts_target || mayConnect({ host, port: portOf(url), address });
    if (!addresses.every(isAllowed)) {
      throw new OutboundFailure('forbidden_address', 'the target is not on the Internet, or its port is not allowed');
    }
    return addresses;
  }

  async function resolveName(host: string): Promise<string[]> {
    const addresses = await resolve(host).catch((cause: unknown) => {
      throw new OutboundFailure('unreachable', 'the host name cannot be resolved', { cause });
    });
    if (addresses.length === 0) throw new OutboundFailure('unreachable', 'the host name has no address');
    return addresses;
  }

  return {
    /** Sends a POST and returns its answer, of any status. Throws only OutboundFailure, within `timeout_ms`. */
    async post(target: string, request: OutboundRequest): Promise<OutboundAnswer> {
      const { trusts_target = false, account = '', timeout_ms } = request;
      const url = parseTarget(target);
      const deadline = new AbortController();
      const timer = setTimeout(() => deadline.abort(), timeout_ms);
      const signals = [deadline.signal, ...(request.signal ? [request.signal] : [])];
      const signal = AbortSignal.any(signals);
      let started_at = Number.POSITIVE_INFINITY;
      const late = performance.now() + timeout_ms * LATE_TURN;
      let was_sent = false;
      const toFailure = () => {
        const progress = { was_sent, waited_ms: Math.max(0, performance.now() - started_at) };
        if (!deadline.signal.aborted) return new OutboundFailure('cancelled', 'the caller has disconnected', progress);
        if (started_at > late)
          return new OutboundFailure('too_busy', 'the turn of the request did not come in time', progress);
        return new OutboundFailure('timeout', `no answer within ${timeout_ms} ms`, progress);
      };
      const onSend = () => {
        was_sent = true;
      };
      const send = async () => {
        started_at = performance.now();
        const addresses = await findAddresses(url, trusts_target);
        if (signal.aborted) throw toFailure();
        return await sendPost({ ...request, url, addresses, certificate_authorities, signal, onSend });
      };
      try {
        const destination = { account, origin: url.origin };
        // The inner race ends the work for the bulkheads, the outer one also ends the wait for a turn.
        return await orAborted(
          pass(destination, () => orAborted(send(), signal, toFailure), signal),
          signal,
          toFailure,
        );
      } catch (error) {
        throw error instanceof OutboundFailure
          ? error
          : new OutboundFailure('unreachable', 'the request failed', { cause: error, was_sent });
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

function parseTarget(target: string): URL {
  const url = URL.canParse(target) ? new URL(target) : undefined;
  const is_valid = url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  if (!is_valid || toBareHost(url.hostname) === '')
    throw new OutboundFailure('bad_request', 'the target is not an http or https address');
  return url;
}

/** Resolves a name by the machine's settings. With c-ares no thread waits for a name server. */
async function resolveBySystem(host: string): Promise<string[]> {
  return (await dns.lookup(host, { backend: 'c-ares' })).map(({ address }) => address);
}

import { isIP } from 'node:net';
import { dns } from 'bun';
import {
  type Endpoint,
  isOwnAddress,
  isPublicAddress,
  isUsualPort,
  parseAllowList,
  portOf,
  toBareHost,
} from './addresses.ts';
import { exchange, type OutboundAnswer } from './exchange.ts';
import { OutboundFailure } from './failure.ts';
import { createLanes, type Lane, type LaneLimits } from './lanes.ts';

export type { OutboundAnswer } from './exchange.ts';
export { type FailureKind, OutboundFailure } from './failure.ts';
export type { Lane } from './lanes.ts';

/** Of the time of a request: a target whose turn came later than that is not to blame when the time is up. */
const LATE_TURN = 0.5;

export interface OutboundOptions {
  /** Targets that may be private: networks (`10.1.0.0/16`), addresses and hosts, with a port or without. Throws RangeError. */
  allowed_private: readonly string[];
  /** How names become addresses; the system's way when it is left out. */
  resolve?: (host: string) => Promise<string[]>;
  /** Whether an address belongs to this machine; asks the operating system when it is left out. */
  isOwn?: (address: string) => boolean;
  /** In PEM, whom to trust; those whom the system trusts when it is left out. */
  certificate_authorities?: string;
  lane_limits?: LaneLimits;
  /** A target failed too often and is left alone for a while. */
  onRest?: (lane: Lane) => void;
}

export interface OutboundRequest {
  /** None that belong to the connection, as Host. Content-Type is not added. */
  headers: Record<string, string>;
  body: string;
  /** For everything: waiting for a turn, resolving, connecting, TLS, and the whole answer. */
  timeout_ms: number;
  /** A longer body is a broken answer. 0: the body is not read, and does not matter; `text` is empty. */
  answer_bytes_max: number;
  signal?: AbortSignal;
  /** The address comes from the operator's own settings: it may be private. */
  trusts_target?: boolean;
  /** On whose account it is sent: those of one account can use up its share of the connections, and no other's. */
  account?: string;
}

export type Outbound = ReturnType<typeof createOutbound>;

/**
 * Sends requests to addresses that others have chosen, and that may be chosen to hurt: to reach what only this machine
 * reaches, or to keep it busy. Each is resolved anew; all that its name stands for must be on the Internet; the connection
 * goes to just what was checked and is not kept; nothing is followed or unpacked; everything has a limit.
 */
export function createOutbound(options: OutboundOptions) {
  const { resolve = resolveBySystem, isOwn = isOwnAddress, certificate_authorities } = options;
  const allowed = parseAllowList(options.allowed_private);
  const pass = createLanes(options.lane_limits, options.onRest);

  function mayConnect(endpoint: Endpoint): boolean {
    if (allowed.allows(endpoint)) return true;
    const { address, port } = endpoint;
    return isPublicAddress(address) && isUsualPort(port) && !isOwn(address);
  }

  /** The addresses of a target, if every single one may be connected to. */
  async function findAddresses(url: URL, trusts_target: boolean): Promise<string[]> {
    const host = toBareHost(url.hostname);
    const addresses = isIP(host) === 0 ? await resolveName(host) : [host];
    const isFine = (address: string) => trusts_target || mayConnect({ host, port: portOf(url), address });
    if (!addresses.every(isFine)) {
      throw new OutboundFailure('forbidden_address', 'it is not on the Internet, at a usual port');
    }
    return addresses;
  }

  async function resolveName(host: string): Promise<string[]> {
    const addresses = await resolve(host).catch((cause: unknown) => {
      throw new OutboundFailure('unreachable', 'its name cannot be resolved', cause);
    });
    if (addresses.length === 0) throw new OutboundFailure('unreachable', 'its name has no address');
    return addresses;
  }

  return {
    /** Sends a POST; the answer may have any status. Throws OutboundFailure, and nothing else, within the time. */
    async post(address: string, request: OutboundRequest): Promise<OutboundAnswer> {
      const { trusts_target = false, account = '', timeout_ms } = request;
      const url = parseTarget(address);
      const deadline = new AbortController();
      const timer = setTimeout(() => deadline.abort(), timeout_ms);
      const signals = [deadline.signal, ...(request.signal ? [request.signal] : [])];
      const signal = AbortSignal.any(signals);
      let turn_came = Number.POSITIVE_INFINITY;
      const late = performance.now() + timeout_ms * LATE_TURN;
      const giveUp = () => {
        if (!deadline.signal.aborted) return new OutboundFailure('cancelled', 'nobody waits for it any more');
        if (turn_came > late) return new OutboundFailure('too_busy', 'its turn did not come in time');
        return new OutboundFailure('timeout', `no answer within ${timeout_ms} ms`);
      };
      const send = async () => {
        turn_came = performance.now();
        const addresses = await findAddresses(url, trusts_target);
        if (signal.aborted) throw giveUp();
        return await exchange({ ...request, url, addresses, certificate_authorities, signal });
      };
      try {
        const lane = { account, origin: url.origin };
        // Given up at once, wherever the work is; and it is for the lane to know that it was.
        return await orAborted(
          pass(lane, () => orAborted(send(), signal, giveUp), signal),
          signal,
          giveUp,
        );
      } catch (error) {
        throw error instanceof OutboundFailure ? error : new OutboundFailure('unreachable', 'it failed', error);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** What the work gives, or the failure as soon as the signal is aborted. */
async function orAborted<Result>(
  work: Promise<Result>,
  signal: AbortSignal,
  failure: () => OutboundFailure,
): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(failure());
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, work]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function parseTarget(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const is_fine = url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  if (!is_fine || toBareHost(url.hostname) === '') throw new OutboundFailure('bad_request', 'no http or https address');
  return url;
}

/** Asks as the machine is set up to, without keeping a thread waiting for names that nobody answers for. */
async function resolveBySystem(host: string): Promise<string[]> {
  return (await dns.lookup(host, { backend: 'c-ares' })).map(({ address }) => address);
}

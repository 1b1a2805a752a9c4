import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import acme from 'acme-client';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { assert, StartError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { CertificateError, parseCertificate } from './certificate.ts';
import { renewalOf, retryAfter } from './rules.ts';
import * as store from './store.ts';

/** How long an order may take. Another process may try again after that. */
const ORDER_MS = 180_000;
const REQUEST_MS = 30_000;
/** How long the challenges of a host are remembered, because anyone may ask for one and each read is a query. */
const CHALLENGES_KEPT_MS = 1_000;

export interface AcmeOptions {
  /** The hosts to get certificates for. Each gets one of its own. */
  hosts: string[];
  /** The address of the authority's directory. */
  directory: string;
  /** The address to which the authority may send warnings; undefined for none. */
  email: string | undefined;
  /** A file with the certificate that signed the authority's own address, if the system does not trust it. */
  ca_file: string | undefined;
}

interface Dependencies extends AcmeOptions {
  database: Database;
  clock: Clock;
  events: Events;
}

export type Acme = ReturnType<typeof createAcme>;

/**
 * Creates the client of an ACME authority (RFC 8555). Processes on one database share the account and the certificates,
 * and one of them at a time orders the certificate of a host. The authority checks a host by HTTP-01: any of the processes
 * answers.
 */
export function createAcme({ database, clock, events, hosts, directory, email, ca_file }: Dependencies) {
  const { queries } = database;
  configureLibrary(ca_file);

  const challenges = new Map<string, { read_at: number; answers: Promise<ReadonlyMap<string, string>> }>();
  /** Returns the answers to the challenges of a host, by token. Requests of the same second share a query. */
  function readChallenges(host: string): Promise<ReadonlyMap<string, string>> {
    const now = performance.now();
    const known = challenges.get(host);
    if (known && now - known.read_at < CHALLENGES_KEPT_MS) return known.answers;
    const answers = store.selectAnswers(queries, { host, now: clock.now() });
    challenges.set(host, { read_at: now, answers });
    return answers;
  }

  /**
   * Returns a client for the account of the stored key. The authority creates the account if it does not know the key, or
   * no longer knows it.
   */
  async function openAccount(): Promise<acme.Client> {
    const makeKey = async () => String(await acme.crypto.createPrivateEcdsaKey());
    const key = await store.findOrInsertAccountKey(queries, directory, makeKey);
    const client = new acme.Client({ directoryUrl: directory, accountKey: key });
    const contact = email === undefined ? {} : { contact: [`mailto:${email}`] };
    await client.createAccount({ termsOfServiceAgreed: true, ...contact }).catch((cause: unknown) => {
      // If the account exists, the library finds it and then updates it, which an authority may refuse.
      if (!hasAccountUrl(client)) throw cause;
    });
    return client;
  }

  /** Orders the certificate of a claimed host. Returns it with its key in PEM. */
  async function order(host: string): Promise<{ certificate: string; key: string }> {
    const client = await openAccount();
    const [key, csr] = await acme.crypto.createCsr({ altNames: [host] }, await acme.crypto.createPrivateEcdsaKey());
    const certificate = await client.auto({
      csr,
      challengePriority: ['http-01'],
      // The authority checks the host from outside, which this machine may not be able to.
      skipChallengeVerification: true,
      challengeCreateFn: async (_authorization, { token }, answer) => {
        const expire_ts = new Date(clock.now().getTime() + ORDER_MS);
        await store.insertChallenge(queries, { token, host, answer, expire_ts });
        // After this pause, no process still remembers the challenges that the host had before.
        await Bun.sleep(CHALLENGES_KEPT_MS);
      },
      challengeRemoveFn: async (_authorization, { token }) => store.deleteChallenge(queries, token, clock.now()),
    });
    return { certificate, key: String(key) };
  }

  return {
    /** Returns the certificates that have been issued. */
    async read() {
      return (await store.selectIssued(queries, directory, hosts)).map(parseCertificate);
    },

    /** Adds new hosts, whose certificates are due at once. */
    register: () => store.insertHosts(queries, directory, hosts, clock.now()),

    /** Orders a certificate that is due and that no other process orders. Returns false if there is none. */
    async renewOne(signal: AbortSignal): Promise<boolean> {
      const now = clock.now();
      const until = new Date(now.getTime() + ORDER_MS);
      const claim = signal.aborted ? undefined : await store.claimDue(queries, { directory, hosts, now, until });
      if (!claim) return false;
      const { host } = claim;
      try {
        const pair = await withOrderDeadline(order(host), signal);
        const parsed = parseCertificate(pair);
        const due_ts = renewalOf(parsed);
        // False if another process has claimed the host since, and orders its own.
        const is_saved = await database.transact((tx) => store.saveIssued(tx, claim, { ...pair, due_ts }));
        const [expires_at, renewal_at] = [parsed.expires_at.toISOString(), due_ts.toISOString()];
        if (is_saved) events.emit({ event: 'certificate_issued', host, expires_at, renewal_at });
      } catch (cause) {
        if (signal.aborted) {
          await store.releaseClaim(queries, claim);
          return false;
        }
        const retry_in_ms = retryAfter(claim.failures + 1);
        await store.saveFailure(queries, claim, new Date(clock.now().getTime() + retry_in_ms));
        const reason = describeFailure(cause);
        events.emit({ event: 'certificate_not_issued', host, reason, failures: claim.failures + 1, retry_in_ms });
      }
      return true;
    },

    /** Returns what the authority expects to read at one of `hosts`, if an order is in progress. */
    async answerOf({ host, token }: { host: string; token: string }): Promise<string | undefined> {
      return (await readChallenges(host)).get(token);
    },
  };
}

/** Says in a sentence why no certificate was issued. */
function describeFailure(cause: unknown): string {
  if (cause instanceof CertificateError) return `The issued certificate ${cause.message}`;
  return cause instanceof Error ? cause.message : String(cause);
}

function hasAccountUrl(client: acme.Client): boolean {
  try {
    return client.getAccountUrl() !== '';
  } catch {
    return false;
  }
}

/**
 * Sets the deadline and the trusted authority of all requests of the library. A failed request is not repeated, because
 * the library would wait for as long as the authority demands, and an order is repeated as a whole. Throws StartError if
 * the file cannot be read.
 */
function configureLibrary(ca_file: string | undefined): void {
  const { defaults } = acme.axios;
  assert('acmeSettings' in defaults, 'the library has settings of its own');
  Object.assign(defaults.acmeSettings as object, { retryMaxAttempts: 0 });
  defaults.timeout = REQUEST_MS;
  if (ca_file === undefined) return;
  try {
    defaults.httpsAgent = new Agent({ ca: readFileSync(ca_file) });
  } catch (cause) {
    throw new StartError(`The file ${ca_file} cannot be read (${cause}): check MUSTER_ACME_CA.`, { cause });
  }
}

/** Awaits work for as long as an order may take, or until the signal. */
async function withOrderDeadline<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const ended = AbortSignal.any([signal, AbortSignal.timeout(ORDER_MS)]);
  const { promise, reject } = Promise.withResolvers<never>();
  const end = () => reject(new Error(signal.aborted ? 'the service stops' : `no answer within ${ORDER_MS / 1_000} s`));
  ended.addEventListener('abort', end, { once: true });
  if (ended.aborted) end();
  try {
    return await Promise.race([work, promise]);
  } finally {
    ended.removeEventListener('abort', end);
  }
}

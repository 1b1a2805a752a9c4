import type { Clock } from '../../platform/clock.ts';
import type { DataDirectory } from '../../platform/data-directory.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import type { ServedCertificates } from '../../platform/http/ports/tls-port.ts';
import { startLoop } from '../../platform/loop.ts';
import { type Feed, wakeOnChange } from '../../platform/watch/feed.ts';
import { topics } from '../topics.ts';
import type { Acme, AcmeOptions } from './acme.ts';
import type { Certificate } from './certificate.ts';
import { CertificateFiles, type FilePair } from './certificate-files.ts';
import type { LocalAuthority } from './local-authority.ts';
import { selectCertificates } from './rules.ts';

const FILES_EVERY_MS = 2_000;
const DUE_EVERY_MS = 60_000;
const LOCAL_ADVICE = 'import this file as a certificate authority into the browsers that should trust this machine';
const CHALLENGE_PATH = '/.well-known/acme-challenge/';
/** RFC 8555 has tokens of base64url. Authorities use 43 characters. */
const CHALLENGE_TOKEN = /^[A-Za-z0-9_-]{16,128}$/;

export interface CertificatesOptions {
  /** Certificates in files. */
  files: FilePair[];
  /** Undefined without an ACME authority. */
  acme: AcmeOptions | undefined;
  /** The names that the local authority signs; undefined without one. */
  local_names: string[] | undefined;
}

export interface CertificatesDependencies extends CertificatesOptions {
  database: Database;
  clock: Clock;
  events: Events;
  feed: Feed;
  data: DataDirectory;
}

export interface Certificates extends ServedCertificates {
  current(): ReadonlyMap<string, Certificate>;
  /**
   * Answers the request by which the ACME authority checks that one of its hosts leads to this service; undefined for all
   * other requests.
   */
  answerChallenge(request: Request): Promise<Response> | undefined;
  startWork(signal: AbortSignal): { stopped: Promise<void> }[];
}

/** Opens the certificates of all sources: files first, then those of the ACME authority, then the local one. */
export async function createCertificates(dependencies: CertificatesDependencies): Promise<Certificates> {
  const { files: pairs, acme: acme_options, local_names, events, feed, data, clock } = dependencies;
  const files = await CertificateFiles.open(pairs, events);
  const local = local_names && (await openLocalAuthority({ data, clock, names: local_names }));
  if (local) events.emit({ event: 'local_authority_used', file: local.file, advice: LOCAL_ADVICE });
  const acme = acme_options && (await openAcme({ ...dependencies, ...acme_options }));
  await acme?.register();
  let issued: Certificate[] = (await acme?.read()) ?? [];
  const listeners = new Set<() => void>();
  const current = () =>
    selectCertificates([...files.certificates, ...issued, ...(local ? [local.certificate] : [])], clock.now());
  const describeServed = () => JSON.stringify([...current()].map(([name, { certificate }]) => [name, certificate]));
  let served = describeServed();

  /** Notifies of a change: new certificates, or one that has expired. */
  function notifyOfChange(): void {
    const before = served;
    served = describeServed();
    if (served !== before) for (const listener of listeners) listener();
  }

  async function answer({ answerOf }: Acme, host: string, token: string): Promise<Response> {
    try {
      const text = await answerOf({ host, token });
      if (text === undefined) return new Response('There is no such challenge.\n', { status: 404 });
      return new Response(text, { headers: { 'content-type': 'application/octet-stream' } });
    } catch {
      // The database is unavailable, so whether there is such a challenge is not known.
      return new Response('Try again.\n', { status: 503, headers: { 'retry-after': '1' } });
    }
  }

  function startReading(signal: AbortSignal) {
    return startLoop({
      name: 'certificate-files',
      every_ms: FILES_EVERY_MS,
      signal,
      events,
      async step() {
        await files.reload();
        await local?.renew();
        notifyOfChange();
        return 0;
      },
    });
  }

  function startOrdering({ renewOne, read }: Acme, signal: AbortSignal) {
    const loop = startLoop({
      name: 'certificates',
      every_ms: DUE_EVERY_MS,
      signal,
      events,
      async step() {
        // Serves each certificate once it is issued, because the orders of other hosts may take long, or fail.
        let has_more: boolean;
        do {
          has_more = await renewOne(signal);
          issued = await read();
          notifyOfChange();
        } while (has_more);
        return 0;
      },
    });
    wakeOnChange(loop, { feed, topics: [topics.certificates()], signal });
    return loop;
  }

  return {
    current,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    answerChallenge(request) {
      if (!acme || !request.url.includes(CHALLENGE_PATH) || !URL.canParse(request.url)) return undefined;
      const { hostname, pathname } = new URL(request.url);
      // Sites and game servers answer the challenges of their own hosts.
      if (!acme_options?.hosts.includes(hostname)) return undefined;
      const token = pathname.slice(CHALLENGE_PATH.length);
      if (!pathname.startsWith(CHALLENGE_PATH) || !CHALLENGE_TOKEN.test(token)) return undefined;
      return answer(acme, hostname, token);
    },
    startWork: (signal) => [
      ...(pairs.length > 0 || local ? [startReading(signal)] : []),
      ...(acme ? [startOrdering(acme, signal)] : []),
    ],
  };
}

// The libraries of these two take a tenth of a second to load, so only services that use them do.

async function openAcme(options: Parameters<typeof import('./acme.ts').createAcme>[0]): Promise<Acme> {
  const { createAcme } = await import('./acme.ts');
  return createAcme(options);
}

async function openLocalAuthority(
  options: Parameters<typeof import('./local-authority.ts').LocalAuthority.open>[0],
): Promise<LocalAuthority> {
  const opened = await import('./local-authority.ts');
  return await opened.LocalAuthority.open(options);
}

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createBuilds } from '../../src/features/builds/builds.ts';
import { createCaptcha } from '../../src/features/captcha/captcha.ts';
import { createDatacenters } from '../../src/features/datacenters/datacenters.ts';
import { createLobbies } from '../../src/features/lobbies/lobbies.ts';
import { startReconciling } from '../../src/features/lobbies/reconcile.ts';
import type { CreateBody, FindBody, JoinAnswer } from '../../src/features/lobbies/wire.ts';
import { createNamespaces } from '../../src/features/namespaces/namespaces.ts';
import { createLogs } from '../../src/features/servers/logs.ts';
import { createServers } from '../../src/features/servers/servers.ts';
import { createSites } from '../../src/features/sites/sites.ts';
import { topics } from '../../src/features/topics.ts';
import { createUploads } from '../../src/features/uploads/uploads.ts';
import { createVerification } from '../../src/features/verification/verification.ts';
import { createVersions } from '../../src/features/versions/versions.ts';
import { parseAddressClasses } from '../../src/platform/address-classes.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { ServiceError } from '../../src/platform/errors.ts';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { NO_IP_DATABASE } from '../../src/platform/ip-database.ts';
import { createDiskObjects } from '../../src/platform/objects/disk.ts';
import { createPresigner } from '../../src/platform/objects/presign.ts';
import { createOutbound } from '../../src/platform/outbound/outbound.ts';
import { loadKey } from '../../src/platform/tokens/keys.ts';
import { createTokens } from '../../src/platform/tokens/tokens.ts';
import { type Feed, openFeed } from '../../src/platform/watch/feed.ts';
import { readVersions } from '../../src/platform/watch/versions.ts';
import { openWatch, type Watch } from '../../src/platform/watch/watch.ts';
import { makeDataDirectory, type TestService } from './service.ts';
import { waitFor } from './wait.ts';

const POOL = 6;
const PLENTY = 1_000_000;
const PUBLIC_URL = 'http://127.0.0.1:1';
export const OWN_REGION = 'local';

/** How long things last here. */
export const TIMES = { seat_timeout_ms: 60_000, ready_timeout_ms: 180_000, player_timeout_ms: 600_000 };

export type Wanted = { /** Whose player asks: the last number of an address. */ client?: number } & (
  | { kind: 'find'; body: FindBody }
  | { kind: 'create'; body: CreateBody }
  | { kind: 'join'; body: { lobby_id?: string; code?: string; players?: number } }
);

export type Outcome = { answer: JoinAnswer } | { code: string };

/** A request for seats that is under way. */
export interface Asking {
  ray_id: string;
  wanted: Wanted;
  /** Where its seats are, as soon as they are taken in a lobby that is not ready; else undefined when it has been answered. */
  waits: Promise<{ lobby_id: string; player_id: string } | undefined>;
  outcome: Promise<Outcome>;
  hangUp(): void;
}

export type Matchmaker = Awaited<ReturnType<typeof openMatchmaker>>;

/**
 * The matchmaker on a database as `service.ts` puts it together, without HTTP, background work and game servers: a server
 * is a row that no machine takes, and whoever opened this speaks for it.
 */
export async function openMatchmaker({ database_address, clock }: Pick<TestService, 'database_address' | 'clock'>) {
  await using opened = new AsyncDisposableStack();
  const directory = await makeDataDirectory();
  opened.defer(() => rm(directory, { recursive: true, force: true }));
  const database = opened.use(openDatabase(database_address, POOL));
  const events = { emit: () => {} };
  const news = opened.use(await openFeed(database, events));
  /** What the matchmaker is not told yet: news of lobbies comes to it when a test says so. */
  let withheld: (() => void)[] = [];
  const feed: Feed = {
    ...news,
    subscribe(topic, onChange) {
      if (!topic.startsWith(topics.lobbiesOf(''))) return news.subscribe(topic, onChange);
      return news.subscribe(topic, (version) => withheld.push(() => onChange(version)));
    },
  };
  const limits = { watch_hold_ms: 40_000, watchers_max: PLENTY, watchers_per_caller_max: PLENTY };
  const watch = await openWatch(database.queries, feed, limits);
  const tokens = await createTokens(await loadKey(database.queries, clock, 'token'), clock);
  const presigner = createPresigner(await loadKey(database.queries, clock, 'upload'), clock, PUBLIC_URL);

  const base = { database, clock, events, feed, tokens };
  const datacenters = createDatacenters(base);
  const uploads = createUploads({ ...base, objects: createDiskObjects(join(directory, 'objects')), presigner });
  const builds = createBuilds({ ...base, uploads, directory, kinds: ['javascript'] });
  const sites = createSites({ ...base, uploads });
  const surroundings = { shared_captcha_keys: {}, outbound_allow: [] };
  const versions = createVersions({ ...base, ...surroundings, builds, sites, datacenters });
  const namespaces = createNamespaces({
    ...base,
    versions,
    ...{ public_url: PUBLIC_URL, local_url: PUBLIC_URL, host: '', server_host: '', own_hosts: [], sites_domain: '' },
    ...{ domains_allow: [], name_servers: [] },
  });
  const captcha = createCaptcha({
    ...{ ...base, namespaces, versions, outbound: createOutbound({ allowed_private: [] }), public_url: PUBLIC_URL },
    key: await loadKey(database.queries, clock, 'captcha'),
    ...{ hcaptcha_url: PUBLIC_URL, turnstile_url: PUBLIC_URL, captcha_timeout_ms: 5_000 },
    ...{ shared_captcha_keys: {}, captcha_is_open_when_down: false },
  });
  const servers = createServers({ ...base, watch, builds, datacenters, logs: createLogs(base) });
  const seating = new Map<AbortSignal, (place: { lobby_id: string; player_id: string }) => void>();
  /** Tells when somebody begins to wait for his lobby: then his seat has been committed. */
  const overheard: Watch = {
    ...watch,
    until(news, look, waiting) {
      const seen = watch.until(news, look, waiting);
      if (typeof news !== 'string') return seen;
      const [, lobby_id = ''] = news.split(':');
      const { caller_key } = waiting;
      const [, player_id = ''] = (typeof caller_key === 'string' ? caller_key : caller_key()).split(':');
      seating.get(waiting.signal)?.({ lobby_id, player_id });
      return seen;
    },
  };
  const verification = createVerification({
    ...{ clock, ip_database: NO_IP_DATABASE, verification_timeout_ms: 10_000 },
    outbound: createOutbound({ allowed_private: [] }),
  });
  const lobbies = createLobbies({
    ...{ ...base, ...TIMES, watch: overheard, namespaces, versions, datacenters, servers, captcha, verification },
    ...{
      address_classes: parseAddressClasses(''),
      own_region: OWN_REGION,
      request_timeout_ms: 50_000,
      receipts_per_second_max: PLENTY,
      onLeft: () => {},
      onCreated: () => {},
    },
  });
  const keeping = new AbortController();
  const kept = lobbies.receipts.startKeeping(keeping.signal);
  opened.defer(async () => {
    keeping.abort();
    await kept.stopped;
  });

  const heard = new Map<string, number>();

  const everything = opened.move();
  return {
    ...{ database, lobbies, namespaces, servers, datacenters, tokens, receipts: lobbies.receipts },
    /** Asks for seats, as a player of a namespace. */
    ask(namespace_id: string, wanted: Wanted): Asking {
      const leaving = new AbortController();
      const { signal } = leaving;
      const ray_id = crypto.randomUUID();
      const waits = Promise.withResolvers<{ lobby_id: string; player_id: string } | undefined>();
      seating.set(signal, waits.resolve);
      const caller = { kind: 'public', namespace_id } as const;
      const deadline = {
        signal,
        ends_at: Number.POSITIVE_INFINITY,
        get is_over() {
          return signal.aborted;
        },
      };
      const client = { readOrigin: () => undefined, readUserAgent: () => null };
      const asking = { address: `10.0.0.${wanted.client ?? 1}`, ...client, ray_id, deadline };
      const answering =
        wanted.kind === 'find'
          ? lobbies.find(caller, wanted.body, asking)
          : wanted.kind === 'create'
            ? lobbies.create(caller, wanted.body, asking)
            : lobbies.join(caller, wanted.body, asking);
      const outcome = outcomeOf(answering).finally(() => {
        seating.delete(signal);
        waits.resolve(undefined);
      });
      return { ray_id, wanted, waits: waits.promise, outcome, hangUp: () => leaving.abort() };
    },
    /** Keeps listening for news of a namespace's lobbies until the returned function is called. */
    listenTo(namespace_id: string): () => void {
      return news.subscribe(topics.lobbiesOf(namespace_id), (version = 0) => {
        heard.set(namespace_id, Math.max(version, heard.get(namespace_id) ?? 0));
      });
    },
    /** Lets the matchmaker hear of all that has happened to a namespace's lobbies; until then it hears of nothing. */
    async untilHeard(namespace_id: string): Promise<void> {
      const topic = topics.lobbiesOf(namespace_id);
      const version = (await readVersions(database.queries, [topic])).get(topic) ?? 0;
      if ((heard.get(namespace_id) ?? 0) < version) {
        await waitFor(() => (heard.get(namespace_id) ?? 0) >= version, 'news of the lobbies');
      }
      const told_now = withheld;
      withheld = [];
      for (const tell of told_now) tell();
    },
    /** One step of the background work. */
    async reconcile(): Promise<void> {
      const working = new AbortController();
      // The last thing that a step asks for. What fails before that ends it too.
      const listKeptWarm = async () => {
        working.abort();
        return await versions.listKeptWarm();
      };
      const failures: unknown[] = [];
      const emit = (event: ServiceEvent) => {
        if (event.event !== 'loop_failed') return;
        failures.push(event.cause);
        working.abort();
      };
      const times = { ...base, ...TIMES, events: { emit } };
      const doors = {
        node_id: crypto.randomUUID(),
        namespaces,
        datacenters,
        servers,
        versions: { ...versions, listKeptWarm },
      };
      await startReconciling({ ...times, ...doors }, working.signal).stopped;
      if (failures.length > 0) throw new Error('the background work failed', { cause: failures[0] });
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** What becomes of a request, or of what a lobby says; anything but a refusal from the catalogue has no code. */
export async function outcomeOf<Answer>(work: Promise<Answer>): Promise<{ answer: Answer } | { code: string }> {
  try {
    return { answer: await work };
  } catch (error) {
    return { code: error instanceof ServiceError ? error.code : `${error} ${error instanceof Error && error.cause}` };
  }
}

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createBuilds } from '../../../src/features/builds/builds.ts';
import { createCaptcha } from '../../../src/features/captcha/captcha.ts';
import { createDatacenters } from '../../../src/features/datacenters/datacenters.ts';
import { createLobbiesApi } from '../../../src/features/lobbies/lobbies.ts';
import { createAbandonedSeats } from '../../../src/features/lobbies/upkeep/abandoned-seats.ts';
import { type ReconcileDependencies, startReconciling } from '../../../src/features/lobbies/upkeep/reconcile.ts';
import type { CreateBody, FindBody, JoinAnswer } from '../../../src/features/lobbies/wire.ts';
import { createNamespaces } from '../../../src/features/namespaces/namespaces.ts';
import { createLogs } from '../../../src/features/servers/logs/logs.ts';
import { createServers } from '../../../src/features/servers/servers.ts';
import { createSites } from '../../../src/features/sites/sites.ts';
import { topics } from '../../../src/features/topics.ts';
import { createUploads } from '../../../src/features/uploads/uploads.ts';
import { createVerification } from '../../../src/features/verification/verification.ts';
import { createVersions } from '../../../src/features/versions/versions.ts';
import { parseAddressClasses } from '../../../src/platform/address-classes.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { NO_IP_DATABASE } from '../../../src/platform/ip-database.ts';
import { createDiskObjects } from '../../../src/platform/objects/disk.ts';
import { createPresigner } from '../../../src/platform/objects/presign.ts';
import { createOutbound } from '../../../src/platform/outbound/outbound.ts';
import { loadKey } from '../../../src/platform/tokens/keys.ts';
import { createTokens } from '../../../src/platform/tokens/tokens.ts';
import { type Feed, openFeed } from '../../../src/platform/watch/feed.ts';
import { readVersions } from '../../../src/platform/watch/versions.ts';
import { openWatch, type Watch } from '../../../src/platform/watch/watch.ts';
import { LONE_MACHINE, NO_AVOIDED_LOBBIES } from '../machines/lone-machine.ts';
import { makeDataDirectory, type TestService } from '../service.ts';
import { waitFor } from '../wait.ts';

const POOL = 6;
const UNLIMITED = 1_000_000;
const REQUEST_TIMEOUT_MS = 50_000;
const PUBLIC_URL = 'http://127.0.0.1:1';
export const OWN_REGION = 'local';

/** The time limits of these tests. */
export const TIMES = { seat_timeout_ms: 60_000, ready_timeout_ms: 180_000, player_timeout_ms: 600_000 };

export type SeatRequestBody = { /** The last number of the client's address. */ client?: number } & (
  | { kind: 'find'; body: FindBody }
  | { kind: 'create'; body: CreateBody }
  | { kind: 'join'; body: { lobby_id?: string; code?: string; players?: number } }
);

export type Outcome = { answer: JoinAnswer } | { code: string };

/** A request for seats that may not be answered yet. */
export interface SentRequest {
  ray_id: string;
  wanted: SeatRequestBody;
  /** Its seat in a lobby that is not ready, as soon as it is taken; undefined if the request is answered without waiting. */
  waits: Promise<{ lobby_id: string; player_id: string } | undefined>;
  outcome: Promise<Outcome>;
  abort(): void;
}

export type Matchmaker = Awaited<ReturnType<typeof openMatchmaker>>;

/**
 * Opens the matchmaker as the service composes it, without HTTP, background work and game servers. A server is a row that no
 * machine starts, and the test makes the calls of the server.
 */
export async function openMatchmaker({ database_address, clock }: Pick<TestService, 'database_address' | 'clock'>) {
  await using opened = new AsyncDisposableStack();
  const directory = await makeDataDirectory();
  opened.defer(() => rm(directory, { recursive: true, force: true }));
  const database = opened.use(openDatabase(database_address, POOL));
  const events = { emit: () => {} };
  const feed_of_service = opened.use(await openFeed(database, events));
  /** Notifications of lobbies, which wait until a test delivers them. */
  let withheld: (() => void)[] = [];
  const feed: Feed = {
    ...feed_of_service,
    subscribe(topic, onChange) {
      if (!topic.startsWith(topics.lobbiesOf(''))) return feed_of_service.subscribe(topic, onChange);
      return feed_of_service.subscribe(topic, (version) => withheld.push(() => onChange(version)));
    },
  };
  const limits = { watch_hold_ms: 40_000, watchers_max: UNLIMITED, watchers_per_caller_max: UNLIMITED };
  const watch = await openWatch(database.queries, feed, limits);
  const tokens = await createTokens(await loadKey(database.queries, clock, 'token'), clock);
  const presigner = createPresigner(await loadKey(database.queries, clock, 'upload'), clock, PUBLIC_URL);

  const base = { database, clock, events, feed, tokens };
  const datacenters = createDatacenters(base);
  const uploads = createUploads({ ...base, objects: createDiskObjects(join(directory, 'objects')), presigner });
  const builds = createBuilds({ ...base, uploads, directory, available: { kinds: ['javascript'] } });
  const sites = createSites({ ...base, uploads });
  const settings = { shared_captcha_keys: {}, outbound_allow: [] };
  const versions = createVersions({ ...base, ...settings, builds, sites, datacenters });
  const namespaces = createNamespaces({
    ...base,
    versions,
    public_url: PUBLIC_URL,
    local_url: PUBLIC_URL,
    host: '',
    server_host: '',
    own_hosts: [],
    sites_domain: '',
    servers_domain: '',
    domains_allow: [],
    name_servers: [],
  });
  const captcha = createCaptcha({
    ...base,
    namespaces,
    versions,
    outbound: createOutbound({ allowed_private: [] }),
    public_url: PUBLIC_URL,
    key: await loadKey(database.queries, clock, 'captcha'),
    hcaptcha_url: PUBLIC_URL,
    turnstile_url: PUBLIC_URL,
    captcha_timeout_ms: 5_000,
    shared_captcha_keys: {},
    captcha_is_open_when_down: false,
  });
  const logs = createLogs(base);
  const servers = createServers({ ...base, watch, builds, datacenters, logs, machines: LONE_MACHINE });
  const waiting_requests = new Map<AbortSignal, (place: { lobby_id: string; player_id: string }) => void>();
  /** Resolves `waits` when a request begins to wait for its lobby, because its seat is committed then. */
  const observed_watch: Watch = {
    ...watch,
    until(wanted_topics, look, waiting) {
      const seen = watch.until(wanted_topics, look, waiting);
      if (typeof wanted_topics !== 'string') return seen;
      const [, lobby_id = ''] = wanted_topics.split(':');
      const { caller_key } = waiting;
      const [, player_id = ''] = (typeof caller_key === 'string' ? caller_key : caller_key()).split(':');
      waiting_requests.get(waiting.signal)?.({ lobby_id, player_id });
      return seen;
    },
  };
  const verification = createVerification({
    clock,
    ip_database: NO_IP_DATABASE,
    verification_timeout_ms: 10_000,
    outbound: createOutbound({ allowed_private: [] }),
  });
  const abandoned_seats = createAbandonedSeats(base);
  const lobbies = createLobbiesApi({
    ...base,
    ...TIMES,
    watch: observed_watch,
    namespaces,
    versions,
    datacenters,
    servers,
    captcha,
    verification,
    address_classes: parseAddressClasses(''),
    addressOf: () => undefined,
    avoided: NO_AVOIDED_LOBBIES,
    abandoned_seats,
    counters: { count: (_kind, _namespace_id, work) => work() },
    own_region: OWN_REGION,
    request_timeout_ms: REQUEST_TIMEOUT_MS,
    receipts_per_second_max: UNLIMITED,
    onSeatsFreed: () => {},
    onCreated: () => {},
  });
  const receipts_work = new AbortController();
  const kept = lobbies.receipts.startWork(receipts_work.signal);
  opened.defer(async () => {
    receipts_work.abort();
    await kept.stopped;
  });

  const seen_versions = new Map<string, number>();

  const everything = opened.move();
  return {
    database,
    versions,
    lobbies,
    namespaces,
    servers,
    datacenters,
    tokens,
    watch: observed_watch,
    receipts: lobbies.receipts,
    abandoned_seats,
    /** Sends a request for seats, as a player of a namespace. */
    ask(namespace_id: string, wanted: SeatRequestBody): SentRequest {
      const aborting = new AbortController();
      const { signal } = aborting;
      const ray_id = crypto.randomUUID();
      const waits = Promise.withResolvers<{ lobby_id: string; player_id: string } | undefined>();
      waiting_requests.set(signal, waits.resolve);
      const caller = { kind: 'public', namespace_id } as const;
      const deadline = {
        signal,
        ends_at: Number.POSITIVE_INFINITY,
        get is_over() {
          return signal.aborted;
        },
        toError: () => new ServiceError('API_CLIENT_GONE', {}),
      };
      const client = { readOrigin: () => undefined, readUserAgent: () => null };
      const context = { address: `10.0.0.${wanted.client ?? 1}`, ...client, ray_id, deadline };
      const answering =
        wanted.kind === 'find'
          ? lobbies.find(caller, wanted.body, context)
          : wanted.kind === 'create'
            ? lobbies.create(caller, wanted.body, context)
            : lobbies.join(caller, wanted.body, context);
      const outcome = outcomeOfCall(answering).finally(() => {
        waiting_requests.delete(signal);
        waits.resolve(undefined);
      });
      return { ray_id, wanted, waits: waits.promise, outcome, abort: () => aborting.abort() };
    },
    /** Subscribes to a namespace's lobbies until the returned function is called. */
    subscribeTo(namespace_id: string): () => void {
      return feed_of_service.subscribe(topics.lobbiesOf(namespace_id), (version = 0) => {
        seen_versions.set(namespace_id, Math.max(version, seen_versions.get(namespace_id) ?? 0));
      });
    },
    /** Waits for all notifications of a namespace's lobbies, and delivers them to the matchmaker. */
    async deliverNotifications(namespace_id: string): Promise<void> {
      const topic = topics.lobbiesOf(namespace_id);
      const version = (await readVersions(database.queries, [topic])).get(topic) ?? 0;
      if ((seen_versions.get(namespace_id) ?? 0) < version) {
        await waitFor(() => (seen_versions.get(namespace_id) ?? 0) >= version, 'notifications of the lobbies');
      }
      const delivered = withheld;
      withheld = [];
      for (const deliver of delivered) deliver();
    },
    /** One step of the background work, with parts of it changed. Returns its events. */
    async reconcile({
      versions: changed_versions,
      ...change
    }: Partial<ReconcileDependencies> = {}): Promise<ServiceEvent[]> {
      const working = new AbortController();
      // The last read of a step. An earlier failure ends the step too.
      const listKeptWarm = async () => {
        working.abort();
        return await versions.listKeptWarm();
      };
      const failures: unknown[] = [];
      const emitted: ServiceEvent[] = [];
      const emit = (event: ServiceEvent) => {
        emitted.push(event);
        if (event.event !== 'loop_failed') return;
        failures.push(event.cause);
        working.abort();
      };
      const times = { ...base, ...TIMES, events: { emit } };
      const features = {
        node_id: crypto.randomUUID(),
        namespaces,
        datacenters,
        servers,
        machines: LONE_MACHINE,
        avoided: NO_AVOIDED_LOBBIES,
        abandoned_seats,
        versions: { ...versions, ...changed_versions, listKeptWarm },
      };
      await startReconciling({ ...times, ...features, ...change }, working.signal).stopped;
      if (failures.length > 0) throw new Error('the background work failed', { cause: failures[0] });
      return emitted;
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** Returns the answer of a call, or the code of its refusal; the text of any other error. */
export async function outcomeOfCall<Answer>(work: Promise<Answer>): Promise<{ answer: Answer } | { code: string }> {
  try {
    return { answer: await work };
  } catch (error) {
    return { code: error instanceof ServiceError ? error.code : `${error} ${error instanceof Error && error.cause}` };
  }
}

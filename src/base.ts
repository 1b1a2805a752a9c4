import { hostname } from 'node:os';
import type { Config } from './config.ts';
import type { Clock } from './platform/clock.ts';
import type { DataDirectory } from './platform/data-directory.ts';
import { openConfiguredDatabase } from './platform/database/connect.ts';
import type { Database, DatabaseAddress } from './platform/database/database.ts';
import { migrateDatabase } from './platform/database/migrate.ts';
import type { Events } from './platform/events.ts';
import { createDiskObjects } from './platform/objects/disk.ts';
import { createSignedLinks } from './platform/objects/links.ts';
import { createPresigner } from './platform/objects/presign.ts';
import { openS3Objects } from './platform/objects/s3.ts';
import { locationOfBucket } from './platform/objects/s3-settings.ts';
import { compareStorage } from './platform/objects/storage-mark.ts';
import { createDiskSpace, UNLIMITED_SPACE } from './platform/system/disk-space.ts';
import { loadKey } from './platform/tokens/keys.ts';
import { createTokens, type Tokens } from './platform/tokens/tokens.ts';
import { type Feed, openFeed } from './platform/watch/feed.ts';
import { openWatch, type Watch } from './platform/watch/watch.ts';

/** The parts that every feature uses. */
interface Base {
  database: Database;
  clock: Clock;
  events: Events;
  feed: Feed;
  watch: Watch;
  tokens: Tokens;
}

interface BaseOptions {
  clock: Clock;
  events: Events;
  data: DataDirectory;
  database_address?: DatabaseAddress | undefined;
  feed_recheck_ms?: number | undefined;
  /** Ends the wait for the bucket or the database, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Opens the parts that features use: the database, its change feed, tokens, and the storage of uploaded files. */
export async function openBase(config: Config, options: BaseOptions) {
  const { clock, events, data, database_address, feed_recheck_ms, signal } = options;
  const { database_url, database_pool, public_url, s3, disk_reserve_bytes } = config;
  await using opened = new AsyncDisposableStack();

  const space = createDiskSpace({ directory: data.path, reserve_bytes: disk_reserve_bytes, events });
  // Before the database: without the bucket, opening the database would be useless.
  const objects = s3 ? await openS3Objects(s3, { signal }) : createDiskObjects(data.folder('objects'), space);

  const connecting = { address: database_address, signal };
  const database = opened.use(await openConfiguredDatabase({ database_url, database_pool }, data, events, connecting));
  await migrateDatabase(database, { signal });
  const { queries } = database;
  const feed = opened.use(await openFeed(database, events, feed_recheck_ms));
  const watch = await openWatch(queries, feed, config.watch);
  const tokens = await createTokens(await loadKey(queries, clock, 'token'), clock);
  const base: Base = { database, clock, events, feed, watch, tokens };

  const upload_key = await loadKey(queries, clock, 'upload');
  const location = s3 ? locationOfBucket(s3) : `${data.folder('objects')} on ${hostname()}`;
  const storage = {
    space,
    /** The space of the embedded database. An external database has a disk of its own, without a limit here. */
    database_space: database_url === undefined ? space : UNLIMITED_SPACE,
    objects,
    presigner: createPresigner(upload_key, clock, public_url),
    links: createSignedLinks(upload_key, clock, public_url),
    /** A warning for operators if this process does not share its files with the other processes of the database. */
    warning: await compareStorage({ queries, objects, location, events }),
  };

  const everything = opened.move();
  return { base, storage, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

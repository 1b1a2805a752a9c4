import { Value } from '@sinclair/typebox/value';
import { LRUCache } from 'lru-cache';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { isTaken } from '../../platform/database/failures.ts';
import { ServiceError } from '../../platform/errors.ts';
import { type MaybePromise, whenKnown } from '../../platform/maybe-promise.ts';
import { parseAllowList } from '../../platform/outbound/addresses.ts';
import type { Builds } from '../builds/builds.ts';
import type { Datacenter, Datacenters } from '../datacenters/datacenters.ts';
import { type ContentProblem, refuseProblems } from '../names.ts';
import type { Sites } from '../sites/sites.ts';
import { type CaptchaConfig, VersionConfig } from './config.ts';
import { VERSION_ADVICE } from './problem-advice.ts';
import { versionProblems } from './rules.ts';
import { type GameModeSettings, resolveMatchmaker } from './settings.ts';
import * as store from './store.ts';
import type { VersionRow } from './tables.ts';

export { TRANSPORT_HEADERS } from './cdn-rules.ts';
export type { ActionConfig, CaptchaConfig, CdnRoute, VerificationConfig } from './config.ts';
export { matchesGlob } from './globs.ts';
export type { GameModeSettings, PortSettings, RuntimeSettings } from './settings.ts';
export { verificationOf } from './settings.ts';
export { DEFAULT_TIER, TIERS, type Tier } from './tiers.ts';

const REMEMBERED_MAX = 1_000;
/** Configurations to remember, as JSON. In memory they may take thirteen times as much. */
const REMEMBERED_BYTES_MAX = 16 * 1_024 * 1_024;
const IDLE_LIMITS_REMEMBERED_MAX = 10_000;
/** Time to keep the reserved numbers of a day; long enough for machines whose clocks differ. */
const RESERVED_MS = 7 * 24 * 3_600_000;
const NAME_TAKEN: ContentProblem = { path: ['display-name', 'not-unique'] };

interface VersionsSettings {
  /** Keys of the service, by captcha provider. */
  shared_captcha_keys: object;
  /** Targets that the operator allows although they are not on the Internet. */
  outbound_allow: readonly string[];
}

export interface VersionsDependencies extends VersionsSettings {
  database: Database;
  clock: Clock;
  builds: Builds;
  sites: Sites;
  datacenters: Datacenters;
}

interface WantedVersion {
  display_name: string;
  config: VersionConfig;
}

/** How many empty lobbies are kept (`min` to `max`), by game mode and region. */
export type IdleLimits = ReadonlyMap<string, ReadonlyMap<string, { min: number; max: number }>>;

export type Versions = ReturnType<typeof createVersions>;

/** Creates the use cases of versions: configurations of how a game is hosted, which never change. */
export function createVersions(dependencies: VersionsDependencies) {
  const { database, clock, builds, sites, datacenters } = dependencies;
  const shared_captchas = Object.keys(dependencies.shared_captcha_keys);
  const allowed_targets = parseAllowList(dependencies.outbound_allow);
  // A version never changes, so cached rows stay valid.
  const remembered = new LRUCache<string, VersionRow>({
    max: REMEMBERED_MAX,
    maxSize: REMEMBERED_BYTES_MAX,
    sizeCalculation: ({ config }) => JSON.stringify(config).length,
  });
  /** The resolved game modes of a version and the datacenters they were resolved for. Each find reads them. */
  const resolved = new WeakMap<VersionRow, { datacenters_then: Datacenter[]; modes: Map<string, GameModeSettings> }>();

  const idle_limits = new LRUCache<string, { game_id: string; datacenters_then: Datacenter[]; limits: IdleLimits }>({
    max: IDLE_LIMITS_REMEMBERED_MAX,
  });

  const regionSlugs = async () => slugsOf(await datacenters.list());

  async function problemsOf(game_id: string, version: WantedVersion): Promise<ContentProblem[]> {
    const { cdn } = version.config;
    const [region_slugs, build_ids, is_site, is_taken] = await Promise.all([
      regionSlugs(),
      builds.completeAmong(game_id, namedBuilds(version.config)),
      cdn?.site_id === undefined ? false : sites.isComplete(game_id, cdn.site_id),
      store.isNameTaken(database.queries, game_id, version.display_name),
    ]);
    const context = { region_slugs, build_ids, is_site, shared_captchas, allowed_targets };
    const problems = versionProblems(version, context);
    return is_taken ? [...problems, NAME_TAKEN] : problems;
  }

  function get(key: store.VersionKey): MaybePromise<VersionRow> {
    const known = remembered.get(key.version_id);
    return known?.game_id === key.game_id ? known : load(key);
  }

  async function load(key: store.VersionKey): Promise<VersionRow> {
    const version = await store.selectVersion(database.queries, key);
    if (!version) throw new ServiceError('VERSION_NOT_FOUND', {});
    remembered.set(key.version_id, version);
    return version;
  }

  function resolve(version: VersionRow, all_datacenters: Datacenter[]): ReadonlyMap<string, GameModeSettings> {
    const known = resolved.get(version);
    if (known?.datacenters_then === all_datacenters) return known.modes;
    const modes = resolveMatchmaker(version.config.matchmaker, slugsOf(all_datacenters));
    resolved.set(version, { datacenters_then: all_datacenters, modes });
    return modes;
  }

  return {
    get,
    list: (game_id: string) => store.selectVersions(database.queries, game_id),
    /** Returns the ids of versions that keep warm lobbies. */
    listKeptWarm: () => store.selectKeptWarm(database.queries),
    /** Returns what is wrong with a version to create. Throws FEATURE_DISABLED. */
    async validate(game_id: string, wanted: WantedVersion) {
      refuseUnsupported(wanted.config);
      return await problemsOf(game_id, wanted);
    },
    /** Creates a version. Throws FEATURE_DISABLED, GAME_TOO_MANY_VERSIONS, or VALIDATION_ERROR with the problems. */
    async create(game_id: string, wanted: WantedVersion): Promise<VersionRow> {
      refuseUnsupported(wanted.config);
      refuseProblems(await problemsOf(game_id, wanted), VERSION_ADVICE);
      const region_slugs = await regionSlugs();
      return await database.transact((tx) => insert(tx, game_id, wanted, region_slugs));
    },
    /** Creates the first version of a new game, which hosts nothing and so has no regions. */
    createFirst: (tx: Tx, game_id: string) => insert(tx, game_id, { display_name: '0.0.1', config: {} }, []),
    /** Reserves a name for the next version: the day in UTC and a number that no other call gets. */
    async reserveName(game_id: string): Promise<string> {
      const now = clock.now();
      const day = dayOf(now);
      const number = await database.transact(async (tx) => {
        await store.dropNumbers(tx, game_id, dayOf(after(now, -RESERVED_MS)));
        return await store.takeNumber(tx, game_id, day);
      });
      return `${day}-${number}`;
    },
    /** Returns the game modes of a version with defaults filled in. */
    gameModes: (key: store.VersionKey): MaybePromise<ReadonlyMap<string, GameModeSettings>> =>
      whenKnown(get(key), (version) =>
        whenKnown(datacenters.list(), (all_datacenters) => resolve(version, all_datacenters)),
      ),
    /**
     * Returns how many empty lobbies a version keeps. Loops read it for every version in each step, so it is remembered
     * without the configurations, which may be large.
     */
    async idleLimits(key: store.VersionKey): Promise<IdleLimits> {
      const all_datacenters = await datacenters.list();
      const known = idle_limits.get(key.version_id);
      if (known?.game_id === key.game_id && known.datacenters_then === all_datacenters) return known.limits;
      const modes = resolve(await get(key), all_datacenters);
      const limits = new Map(
        [...modes].map(([name, { regions }]) => [
          name,
          new Map([...regions].map(([region, { idle_lobbies }]) => [region, idle_lobbies])),
        ]),
      );
      idle_limits.set(key.version_id, { game_id: key.game_id, datacenters_then: all_datacenters, limits });
      return limits;
    },
    /** Returns the captcha settings of a version; undefined if it requires none. */
    captcha: (key: store.VersionKey): MaybePromise<CaptchaConfig | undefined> =>
      whenKnown(get(key), ({ config }) => config.matchmaker?.captcha),
  };

  async function insert(
    tx: Tx,
    game_id: string,
    { display_name, config }: WantedVersion,
    region_slugs: string[],
  ): Promise<VersionRow> {
    const row: VersionRow = {
      version_id: crypto.randomUUID(),
      game_id,
      display_name,
      // Removes unknown members.
      config: Value.Decode(VersionConfig, Value.Clean(VersionConfig, structuredClone(config))),
      keeps_warm: keepsWarm(config, region_slugs),
      create_ts: clock.now(),
    };
    const is_inserted = await store.insertVersion(tx, row).catch((error: unknown) => {
      if (isTaken(error, 'versions_display_name')) refuseProblems([NAME_TAKEN]);
      throw error;
    });
    if (!is_inserted) throw new ServiceError('GAME_TOO_MANY_VERSIONS', { max: store.VERSIONS_MAX });
    return row;
  }
}

/** Formats a day as names of versions do: 2030.12.31. */
const dayOf = (moment: Date) => moment.toISOString().slice(0, 10).replaceAll('-', '.');

const slugsOf = (datacenters: Datacenter[]) => datacenters.map(({ slug }) => slug);

/** Returns the builds of a configuration. */
function namedBuilds({ matchmaker }: VersionConfig): string[] {
  const dockers = [matchmaker?.docker, ...Object.values(matchmaker?.game_modes ?? {}).map(({ docker }) => docker)];
  return dockers.flatMap((docker) => docker?.image_id ?? []);
}

/** Returns whether any game mode keeps warm lobbies in any region. */
function keepsWarm({ matchmaker }: VersionConfig, region_slugs: string[]): boolean {
  const modes = [...resolveMatchmaker(matchmaker, region_slugs).values()];
  return modes.some(({ regions }) => [...regions.values()].some(({ idle_lobbies }) => idle_lobbies.min > 0));
}

/** Refuses settings that this release does not support, so that they are not silently ignored. */
function refuseUnsupported({ matchmaker }: VersionConfig): void {
  if (matchmaker?.lobby_groups === undefined) return;
  throw new ServiceError('FEATURE_DISABLED', { feature: 'config.matchmaker.lobby_groups', instead: 'game_modes' });
}

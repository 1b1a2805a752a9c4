import { findAsset } from '../../platform/assets.ts';
import { assert } from '../../platform/errors.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Builds } from '../builds/builds.ts';
import type { Games } from '../games/games.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import type { Uploads } from '../uploads/uploads.ts';
import type { Versions } from '../versions/versions.ts';

const GAME_NAME = 'demo';
const VERSION_NAME = 'Demo room';
const ROOM = 'examples/room.ts';
/** People who try the demo open many tabs from one address. */
const DEMO_LIMITS = { lobby_count_max: 128, max_players: 128 };

/** The demo game and the namespace of its players. */
export interface Demo {
  game_id: string;
  namespace_id: string;
}

export interface DemoDependencies {
  games: Games;
  namespaces: Namespaces;
  versions: Versions;
  uploads: Uploads;
  builds: Builds;
}

/**
 * Creates the demo game by the steps of a developer: game, build, version, namespaces on that version. The demo is the game
 * named "demo" that has the version "Demo room", whatever its group. Returns undefined if another game has this name.
 */
export async function createDemo(
  dependencies: DemoDependencies,
  caller: CallerOf<'identity'>,
  developer_group_id: string,
): Promise<Demo | undefined> {
  const { games, versions, namespaces } = dependencies;
  const existing = await games.findByNameId(GAME_NAME);
  const game_id =
    existing?.game_id ?? (await games.create(caller, { display_name: 'Demo', developer_group_id, name_id: GAME_NAME }));
  const its_versions = await versions.list(game_id);
  const created_earlier = its_versions.find(({ display_name }) => display_name === VERSION_NAME);
  if (!created_earlier && existing && existing.developer_group_id !== developer_group_id) return undefined;
  const demo_version = created_earlier ?? (await createVersion(dependencies, game_id));
  const its_namespaces = await namespaces.list(game_id);
  for (const { namespace_id, version_id } of its_namespaces) {
    // Only a namespace that has always been on the game's first version is moved.
    const [, ...before] = await namespaces.versionHistory({ game_id, namespace_id }, { limit: 2 });
    if (before.length > 0 || version_id !== its_versions[0]?.version_id) continue;
    await namespaces.setMatchmakerLimits({ game_id, namespace_id }, DEMO_LIMITS);
    await namespaces.setVersion({ game_id, namespace_id }, demo_version.version_id);
  }
  const prod = its_namespaces.find(({ name_id }) => name_id === 'prod');
  assert(prod, 'a game has the namespace prod');
  return { game_id, namespace_id: prod.namespace_id };
}

async function createVersion({ versions, builds, uploads }: DemoDependencies, game_id: string) {
  const room = Bun.file(findAsset(ROOM));
  const { build, presigned_requests } = await builds.prepare(
    { game_id },
    { name: 'Demo room', kind: 'javascript', image_file: { path: ROOM, content_length: room.size } },
  );
  for (const { url, byte_offset, content_length } of presigned_requests) {
    await uploads.receive(url, room.slice(byte_offset, byte_offset + content_length).stream());
  }
  await builds.complete({ game_id }, build.build_id);
  return await versions.create(game_id, {
    display_name: VERSION_NAME,
    config: {
      matchmaker: {
        game_modes: { default: {} },
        max_players: 8,
        // Keeps one empty room, so that a reload of the page returns to it.
        idle_lobbies: { min: 0, max: 1 },
        docker: { image_id: build.build_id, ports: { game: { port: 80, protocol: 'http' } } },
      },
    },
  });
}

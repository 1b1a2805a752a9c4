/**
 * Returns the id of a game mode in a version. Game modes have names only here, where clients of the reference API and the
 * specification have a UUID besides: the same one for the same mode of a version.
 */
export function gameModeId(version_id: string, game_mode: string): string {
  return Bun.randomUUIDv5(game_mode, version_id);
}

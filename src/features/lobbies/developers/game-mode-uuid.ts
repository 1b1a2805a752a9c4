/**
 * Returns the UUID of a game mode in a version. In Muster a game mode has only a name, but the specification and the
 * reference API also have a UUID, so it is derived from the version and the name.
 */
export function gameModeUuid(version_id: string, game_mode: string): string {
  return Bun.randomUUIDv5(game_mode, version_id);
}

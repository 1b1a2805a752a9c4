/** A machine without others, which always takes work. */
export const LONE_MACHINE = {
  lockHeld: async () => ({ takes_servers: true }),
  areAllDraining: () => false,
  isOtherTakingServers: async () => false,
  isOtherSeenTakingServers: () => false,
  isReplaced: () => false,
  draining: () => [],
  machinesThatRemoveNoPods: () => [],
  heldIds: () => [],
  onDeclaredLost: () => {},
};

/** No lobby is on a machine that finds avoid. */
export const NO_AVOIDED_LOBBIES = { ids: () => new Set<string>(), refresh: async () => {} };

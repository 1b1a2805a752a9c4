/** Everything that can be watched, by the name under which its changes are told. */
export const topics = {
  datacenters: () => 'datacenters',
  deviceLink: (device_link_id: string) => `device-link:${device_link_id}`,
  identity: (identity_id: string) => `identity:${identity_id}`,
  /** A group, its members, and who would like to be one. */
  group: (group_id: string) => `group:${group_id}`,
  /** Groups that anybody may ask to join. */
  openGroups: () => 'open-groups',
  /** A game as its developers see it: its own row, its namespaces and versions. */
  game: (game_id: string) => `game:${game_id}`,
  /** The games of the groups that an identity is a member of, and these groups. */
  gamesOf: (identity_id: string) => `games-of:${identity_id}`,
  namespace: (namespace_id: string) => `namespace:${namespace_id}`,
  /** Whose site is served under a host name. */
  siteHost: (host: string) => `site-host:${host}`,
  /** The lobbies of a namespace: which there are, and their places. */
  lobbiesOf: (namespace_id: string) => `lobbies-of:${namespace_id}`,
  /** Who of a namespace waits for his turn. */
  queueOf: (namespace_id: string) => `queue-of:${namespace_id}`,
  /** Who of a namespace's players has connected to his lobby, or left it. */
  playersOf: (namespace_id: string) => `players-of:${namespace_id}`,
  /** Whether a lobby is ready, closed, stopped; its state. */
  lobby: (lobby_id: string) => `lobby:${lobby_id}`,
  /** Who sits in a lobby. */
  seats: (lobby_id: string) => `seats:${lobby_id}`,
  /** The servers of an environment. */
  serversOf: (namespace_id: string) => `servers-of:${namespace_id}`,
  /** The builds of a game, and of its environments. */
  buildsOf: (game_id: string) => `builds-of:${game_id}`,
  /** The sites of a game. */
  sitesOf: (game_id: string) => `sites-of:${game_id}`,
  upload: (upload_id: string) => `upload:${upload_id}`,
  server: (server_id: string) => `server:${server_id}`,
  log: (server_id: string, stream: string) => `log:${server_id}:${stream}`,
  /** There is something to do for the machines of a datacenter: a server to start or to stop. */
  work: (datacenter_id: string) => `work:${datacenter_id}`,
  /** Some server is going, or gone. */
  serversEnding: () => 'servers-ending',
};

/** Topics of everything that can be watched. */
export const topics = {
  /** The certificates that an ACME authority has issued. */
  certificates: () => 'certificates',
  datacenters: () => 'datacenters',
  /** Which machines there are, and whether they take work. Heartbeats do not change it. */
  machines: () => 'machines',
  deviceLink: (device_link_id: string) => `device-link:${device_link_id}`,
  identity: (identity_id: string) => `identity:${identity_id}`,
  /** A group, its members and join requests. */
  group: (group_id: string) => `group:${group_id}`,
  /** Groups open to join requests. */
  listOfOpenGroups: () => 'open-groups',
  /** A game as its developers see it: its row, namespaces and versions. */
  game: (game_id: string) => `game:${game_id}`,
  /** The game with a name id. */
  gameNamed: (name_id: string) => `game-named:${name_id}`,
  /** The groups of which an identity is a member, and their games. */
  gamesOf: (identity_id: string) => `games-of:${identity_id}`,
  namespace: (namespace_id: string) => `namespace:${namespace_id}`,
  /** The namespace of a game with a name id. */
  namespaceNamed: (game_id: string, name_id: string) => `namespace-named:${game_id}:${name_id}`,
  /** The namespace whose site a host name serves. */
  siteHost: (host: string) => `site-host:${host}`,
  /** The lobbies of a namespace and their free seats. */
  lobbiesOf: (namespace_id: string) => `lobbies-of:${namespace_id}`,
  /** The receipts of a namespace's requests for seats. */
  receiptsOf: (namespace_id: string) => `receipts-of:${namespace_id}`,
  /** The queue of finds that wait in a namespace. */
  queueOf: (namespace_id: string) => `queue-of:${namespace_id}`,
  /** The connects and disconnects of a namespace's players. */
  playersOf: (namespace_id: string) => `players-of:${namespace_id}`,
  /** Players whom developers have kicked. */
  kicks: () => 'kicks',
  /** Connections of players through the gateway of a machine that others have replaced. */
  replacedOf: (node_id: string) => `replaced-of:${node_id}`,
  /** The counters of a namespace, by minutes. */
  countersOf: (namespace_id: string) => `counters-of:${namespace_id}`,
  /** Whether a lobby is ready, closed or stopped, and its state. */
  lobby: (lobby_id: string) => `lobby:${lobby_id}`,
  /** How many players of a lobby have connected. */
  connectedIn: (lobby_id: string) => `seats:${lobby_id}`,
  /** The servers of an environment. */
  serversOf: (namespace_id: string) => `servers-of:${namespace_id}`,
  /** The builds of a game, and of its environments. */
  buildsOf: (game_id: string) => `builds-of:${game_id}`,
  /** The sites of a game. */
  sitesOf: (game_id: string) => `sites-of:${game_id}`,
  /** A link by which anyone can look. */
  share: (share_id: string) => `share:${share_id}`,
  /** Locked while a link of a namespace is created. Not watched. */
  sharesOf: (namespace_id: string) => `shares-of:${namespace_id}`,
  upload: (upload_id: string) => `upload:${upload_id}`,
  server: (server_id: string) => `server:${server_id}`,
  /** What a server uses. */
  usage: (server_id: string) => `usage:${server_id}`,
  log: (server_id: string, stream: string) => `log:${server_id}:${stream}`,
  /** Work for the machines of a datacenter: a server to start or to stop. */
  work: (datacenter_id: string) => `work:${datacenter_id}`,
  /** A server that is ending or has ended. */
  serversEnding: () => 'servers-ending',
};

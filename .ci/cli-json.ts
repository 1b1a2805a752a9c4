/**
 * The keys of the object that a command writes with --json, which docs/cli.md shows. Those with a question mark are
 * sometimes missing. A test runs each command, and compares.
 */
export const JSON_KEYS: Record<string, string> = {
  init: 'content, file, notes, read?',
  deploy: 'detached?, dry_run?, game, image_id?, namespace?, old_lobbies?, site_id?, version_id?',
  rollback: 'namespace, old_lobbies, version_id',
  status: 'game, health, lobbies, namespace, players, servers, version',
  why: 'receipt',
  open: 'expire_ts, url',
  'config check': 'build?, cdn?, game, is_valid, matchmaker?, site?',
  'lobbies list': 'lobbies, watch',
  'lobbies watch': 'matching, row_id, rows, summary, watch',
  'lobbies show': 'lobby, server, watch',
  'lobbies close': 'is_closed, lobby_id',
  'lobbies delete': 'lobby_id',
  players: 'players',
  'servers list': 'servers',
  'servers show': 'end?, server',
  'servers stop': 'server_id',
  'versions list': 'versions',
  'versions show': 'version',
  'versions diff': 'differences',
  builds: 'builds, watch',
  namespaces: 'namespaces',
  regions: 'regions',
  'exports lobbies': 'url',
  'exports log': 'url',
  bots: 'connected, faults, find_p50_ms?, find_p95_ms?, refusals, seats, without_port',
  doctor: 'findings, url',
  machines: 'machine?, machines?',
  login: 'profile, url',
  logout: 'url',
  whoami: 'agent, game?, namespace?, profile?, url',
  'tokens create': 'token',
  'tokens inspect': 'agent',
  'tokens revoke': 'game_id',
  use: 'game?, namespace?, profile, url',
};

/** The keys of what the commands for the machine of a service write. */
export const OWN_JSON_KEYS: Record<string, string> = {
  migrate: 'version',
  backup: 'bytes, file',
  restore: 'create_ts, is_other_machine, machine_id?',
  'upgrade --check': 'database_version?, pending_migrations, version',
  version: 'version',
};

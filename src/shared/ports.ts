// How the command line and the hub write the addresses of ports, and which port of a lobby their bots use.

/** A port or a range of ports. It has a host name and a number once its server has started. */
interface Port {
  hostname?: string | undefined;
  port?: number | null | undefined;
  port_range?: { min: number; max: number } | undefined;
}

/** Returns the address of a port, like `203.0.113.5:20000`, or of a range, like `203.0.113.5:20000-20010`. */
export function toAddress(of: Port): string | undefined {
  const { hostname } = of;
  const numbers = toNumbers(of);
  if (hostname === undefined || numbers === undefined) return undefined;
  // In an address, IPv6 has brackets.
  return `${/^[^[].*:/.test(hostname) ? `[${hostname}]` : hostname}:${numbers}`;
}

/** Returns the number of a port, or the first and last one of a range. */
export function toNumbers({ port, port_range }: Port): string | undefined {
  if (port_range) return `${port_range.min}-${port_range.max}`;
  return port?.toString();
}

/** Protocols of ports that take a WebSocket. */
const WITH_SOCKETS: readonly string[] = ['http', 'https'];
/** The protocol of a port that names none. */
const PROTOCOL_DEFAULT = 'https';

interface Docker {
  ports?: Record<string, { protocol?: string }>;
}

/** The ports of game modes in the configuration of a version. */
export interface MatchmakerPorts {
  docker?: Docker;
  game_modes?: Record<string, { docker?: Docker }>;
}

/** Returns the labels of a game mode's ports that take a WebSocket. */
export function readSocketLabels(matchmaker: MatchmakerPorts | undefined, game_mode: string): string[] {
  const { docker, game_modes } = matchmaker ?? {};
  const { ports = {} } = game_modes?.[game_mode]?.docker ?? docker ?? {};
  return Object.entries(ports).flatMap(([label, { protocol = PROTOCOL_DEFAULT }]) =>
    WITH_SOCKETS.includes(protocol) ? [label] : [],
  );
}

/** The answer to a request for a seat, as far as a bot needs it to connect. */
export interface BotSeat {
  ports: Record<string, { hostname: string; port: number | null; is_tls: boolean }>;
  player: { token: string };
}

/**
 * Returns the URL of a WebSocket to the first port of a seat that takes one, with the player's token as `token` and
 * `player_token` in the query. Returns undefined if there is no such port.
 */
export function toSocketUrl({ ports, player }: BotSeat, socket_labels: readonly string[]): string | undefined {
  const usable = Object.entries(ports).filter(([label]) => socket_labels.includes(label));
  const port = usable.map(([, one]) => one).find((one) => one.port !== null);
  const address = port && toAddress(port);
  if (!port || address === undefined) return undefined;
  const query = new URLSearchParams({ token: player.token, player_token: player.token });
  return `${port.is_tls ? 'wss' : 'ws'}://${address}/?${query}`;
}

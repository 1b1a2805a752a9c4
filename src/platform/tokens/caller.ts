/** A port of a game under development, as its development token lists it. */
export interface DevelopmentPort {
  label: string;
  protocol: PortProtocol;
  port?: number;
  port_range?: { min: number; max: number };
}

export const PORT_PROTOCOLS = ['http', 'https', 'tcp', 'tcp_tls', 'udp'] as const;
export type PortProtocol = (typeof PORT_PROTOCOLS)[number];

/** When the token of a caller was issued, in Unix milliseconds; undefined for a token that is yet to be issued. */
interface Issued {
  issued_at?: number;
}

/** The caller of a request, from its token. It is read once for each request and passed to use cases. */
export type Caller =
  | { kind: 'identity'; identity_id: string }
  | { kind: 'public'; namespace_id: string }
  | { kind: 'development'; namespace_id: string; hostname: string; ports: DevelopmentPort[] }
  | { kind: 'lobby'; lobby_id: string }
  | { kind: 'player'; player_id: string }
  | { kind: 'development_player'; namespace_id: string; player_id: string }
  | ({ kind: 'cloud'; game_id: string } & Issued)
  | ({ kind: 'service'; namespace_id: string } & Issued)
  | { kind: 'device_link'; device_link_id: string }
  | { kind: 'share'; share_id: string }
  | { kind: 'metrics' };

export type CallerKind = Caller['kind'];

/** A caller of one of these kinds. */
export type CallerOf<Kind extends CallerKind> = Extract<Caller, { kind: Kind }>;

/** Returns the id by which limits and logs count a caller. */
export function nameCaller(caller: Caller): string {
  switch (caller.kind) {
    case 'identity':
      return `identity:${caller.identity_id}`;
    case 'public':
    case 'development':
    case 'service':
      return `${caller.kind}:${caller.namespace_id}`;
    case 'lobby':
      return `lobby:${caller.lobby_id}`;
    case 'player':
    case 'development_player':
      return `${caller.kind}:${caller.player_id}`;
    case 'cloud':
      return `cloud:${caller.game_id}`;
    case 'device_link':
      return `device_link:${caller.device_link_id}`;
    case 'share':
      return `share:${caller.share_id}`;
    case 'metrics':
      return 'metrics';
  }
}

import type { Caller, CallerKind } from '../../src/platform/tokens/caller.ts';

/** A caller of a kind, unknown to any service. */
export function makeCaller(kind: CallerKind): Caller {
  const id = crypto.randomUUID();
  switch (kind) {
    case 'identity':
      return { kind, identity_id: id };
    case 'public':
    case 'service':
      return { kind, namespace_id: id };
    case 'development':
      return {
        kind,
        namespace_id: id,
        hostname: '127.0.0.1',
        ports: [
          { label: 'game', protocol: 'http', port: 7777 },
          { label: 'voice', protocol: 'udp', port_range: { min: 9000, max: 9010 } },
        ],
      };
    case 'lobby':
      return { kind, lobby_id: id };
    case 'player':
      return { kind, player_id: id };
    case 'development_player':
      return { kind, namespace_id: id, player_id: crypto.randomUUID() };
    case 'cloud':
      return { kind, game_id: id };
    case 'device_link':
      return { kind, device_link_id: id };
    case 'share':
      return { kind, share_id: id };
    case 'metrics':
      return { kind };
  }
}

const KINDS: Record<CallerKind, true> = {
  identity: true,
  public: true,
  development: true,
  lobby: true,
  player: true,
  development_player: true,
  cloud: true,
  service: true,
  device_link: true,
  share: true,
  metrics: true,
};

/** All kinds of tokens. */
export const CALLER_KINDS = Object.keys(KINDS).filter((name): name is CallerKind => name in KINDS);

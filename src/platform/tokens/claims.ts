import { assert } from '../errors.ts';
import { type Caller, type CallerKind, type DevelopmentPort, PORT_PROTOCOLS } from './caller.ts';
import { type MessageFields, MessageWriter, readMessage } from './messages.ts';

/** The content of a token. Times are in Unix milliseconds. */
export interface Claims {
  expires_at: number;
  issued_at: number;
  token_id: string;
  caller: Caller;
}

/**
 * The kinds of callers, by their number in the protobuf message of the reference API: Claims {1 exp, 2 iat, 3 jti,
 * 4 entitlements}. An entitlement is a field with this number, so the kind is signed too.
 */
const ENTITLEMENTS: Record<CallerKind, number> = {
  identity: 2,
  public: 3,
  lobby: 4,
  player: 5,
  cloud: 7,
  development: 8,
  development_player: 9,
  device_link: 14,
  service: 19,
  // Not in the reference API, whose numbers are lower.
  share: 64,
  metrics: 65,
};

export function encodeClaims({ expires_at, issued_at, token_id, caller }: Claims): Uint8Array {
  const message = new MessageWriter();
  message.integer(1, expires_at);
  message.integer(2, issued_at);
  message.uuid(3, token_id);
  message.begin(4);
  message.begin(ENTITLEMENTS[caller.kind]);
  writeCaller(message, caller);
  message.end();
  message.end();
  return message.finish();
}

/** Decodes claims that `encodeClaims` wrote. Returns undefined for other bytes, such as other fields or several kinds. */
export function decodeClaims(bytes: Uint8Array): Claims | undefined {
  try {
    const claims = readMessage(bytes);
    const entitlement = claims.message(4);
    const [number = 0, ...others] = entitlement.numbers();
    const kind = KINDS.get(number);
    assert(kind && others.length === 0, 'a token has one entitlement of a known kind');
    const decoded = {
      expires_at: claims.integer(1),
      issued_at: claims.integer(2),
      token_id: claims.uuid(3),
      caller: readCaller(kind, entitlement.message(number)),
    };
    // Accepts only the canonical encoding: no unknown, repeated or misplaced field.
    return Buffer.compare(encodeClaims(decoded), bytes) === 0 ? decoded : undefined;
  } catch {
    return undefined;
  }
}

const KINDS = new Map(Object.entries(ENTITLEMENTS).map(([kind, number]) => [number, kind as CallerKind]));

function writeCaller(message: MessageWriter, caller: Caller): void {
  const id = firstIdOf(caller);
  if (id !== undefined) message.uuid(1, id);
  if (caller.kind === 'development_player') message.uuid(2, caller.player_id);
  if (caller.kind !== 'development') return;
  message.text(3, caller.hostname);
  for (const port of caller.ports) writePort(message, port);
}

/** Returns the id in field 1. */
function firstIdOf(caller: Caller): string | undefined {
  switch (caller.kind) {
    case 'identity':
      return caller.identity_id;
    case 'public':
    case 'service':
    case 'development':
    case 'development_player':
      return caller.namespace_id;
    case 'lobby':
      return caller.lobby_id;
    case 'player':
      return caller.player_id;
    case 'cloud':
      return caller.game_id;
    case 'device_link':
      return caller.device_link_id;
    case 'share':
      return caller.share_id;
    case 'metrics':
      return undefined;
  }
}

function readCaller(kind: CallerKind, fields: MessageFields): Caller {
  switch (kind) {
    case 'identity':
      return { kind, identity_id: fields.uuid(1) };
    case 'public':
    case 'service':
      return { kind, namespace_id: fields.uuid(1) };
    case 'lobby':
      return { kind, lobby_id: fields.uuid(1) };
    case 'player':
      return { kind, player_id: fields.uuid(1) };
    case 'cloud':
      return { kind, game_id: fields.uuid(1) };
    case 'device_link':
      return { kind, device_link_id: fields.uuid(1) };
    case 'share':
      return { kind, share_id: fields.uuid(1) };
    case 'metrics':
      return { kind };
    case 'development_player':
      return { kind, namespace_id: fields.uuid(1), player_id: fields.uuid(2) };
    case 'development':
      return {
        kind,
        namespace_id: fields.uuid(1),
        hostname: fields.text(3),
        ports: fields.messages(4).map(readPort),
      };
  }
}

/** Writes a port: {1 label, 2 target_port?, 3 protocol, 4 port_range?}. */
function writePort(message: MessageWriter, { label, port, protocol, port_range }: DevelopmentPort): void {
  message.begin(4);
  message.text(1, label);
  if (port !== undefined) message.integer(2, port);
  message.integer(3, PORT_PROTOCOLS.indexOf(protocol) + 1);
  if (port_range) {
    message.begin(4);
    message.integer(1, port_range.min);
    message.integer(2, port_range.max);
    message.end();
  }
  message.end();
}

function readPort(fields: MessageFields): DevelopmentPort {
  const protocol = PORT_PROTOCOLS[fields.integer(3) - 1];
  assert(protocol, 'a port has a known protocol');
  const range = fields.has(4) ? fields.message(4) : undefined;
  return {
    label: fields.text(1),
    protocol,
    ...(fields.has(2) ? { port: fields.integer(2) } : {}),
    ...(range ? { port_range: { min: range.integer(1), max: range.integer(2) } } : {}),
  };
}

/** What a token is for, by its label: the text before its first dot. */
const KINDS: Record<string, string> = {
  usr: 'An identity: a member of groups, or a guest of a game.',
  pub: 'Public: for the clients of a namespace. It is not secret.',
  dev: "Development: for a client on a developer's machine. Its changes are mocked.",
  lobby: 'Lobby: for the game server of a lobby.',
  player: 'Player: the seat of a player, for the game server.',
  dev_player: 'Player of a development token.',
  cloud: 'Cloud: for tools that act for one game.',
  env_svc: 'Service: for a back end that starts servers in one environment.',
  device: 'Device link: for a tool that waits for a cloud token.',
  share: 'Share link: for anyone who looks at a namespace or a lobby.',
  metrics: 'Metrics: for a program that reads the metrics of the service.',
};

/** Labels that the name of a namespace follows, as in pub_prod. */
const WITH_NAMESPACE = ['pub', 'dev'];

/** What a token says of itself. Only the service can tell whether it is accepted. */
interface TokenClaims {
  /** The text before the first dot. */
  label: string;
  kind: string;
  issued_at: Date;
  expires_at: Date;
}

/** Returns what a token says of itself; undefined for any other text. */
export function readToken(token: string): TokenClaims | undefined {
  const [label = '', , payload] = token.trim().split('.');
  const kind = kindOf(label);
  const bytes = payload === undefined ? undefined : decode(payload);
  if (kind === undefined || !bytes) return undefined;
  // The claims begin with two numbers, in the encoding of protocol buffers: a tag and seven bits in each byte.
  const [expires_at, after_expiry] = readNumber(bytes, 1);
  const [issued_at] = readNumber(bytes, after_expiry + 1);
  if (!isMoment(expires_at) || !isMoment(issued_at)) return undefined;
  return { label, kind, issued_at: new Date(issued_at), expires_at: new Date(expires_at) };
}

/** Returns what a label says of its token. */
function kindOf(label: string): string | undefined {
  const word = WITH_NAMESPACE.find((one) => label.startsWith(`${one}_`)) ?? label;
  return KINDS[label] ?? KINDS[word];
}

function readNumber(bytes: Uint8Array, from: number): [value: number, end: number] {
  let value = 0;
  let end = from;
  for (let factor = 1; end < bytes.length; factor *= 128) {
    const byte = bytes[end] ?? 0;
    value += (byte & 127) * factor;
    end += 1;
    if (byte < 128) break;
  }
  return [value, end];
}

function isMoment(ms: number): boolean {
  return ms > 0 && !Number.isNaN(new Date(ms).getTime());
}

function decode(base64url: string): Uint8Array | undefined {
  try {
    const text = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'));
    return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}

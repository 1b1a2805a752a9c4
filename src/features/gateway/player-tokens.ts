const QUERY_NAMES = ['player_token', 'token'];
const PROTOCOL_PREFIX = 'bearer.';

/** The parts of a WebSocket's handshake that its server gets, and the player's token, which it must not get. */
export interface Handshake {
  /** Path and query. */
  target: string;
  protocols: string[];
  token: string | undefined;
  /**
   * The subprotocol with the token. It is accepted if the server selects none, because a browser expects one of those
   * it offered.
   */
  token_protocol: string | undefined;
}

/**
 * Takes the player's token out of a handshake: from the query (`player_token` or `token`), the subprotocols
 * (`bearer.TOKEN`), or the header Authorization.
 */
export function takePlayerToken(
  { target, protocols }: Pick<Handshake, 'target' | 'protocols'>,
  headers: Headers,
): Handshake {
  const of_query = takeFromQuery(target);
  const token_protocol = protocols.find((one) => one.startsWith(PROTOCOL_PREFIX));
  const [, of_header] = /^Bearer (.+)$/i.exec(headers.get('authorization') ?? '') ?? [];
  return {
    target: of_query.target,
    protocols: protocols.filter((one) => !one.startsWith(PROTOCOL_PREFIX)),
    token: of_query.token ?? token_protocol?.slice(PROTOCOL_PREFIX.length) ?? of_header,
    token_protocol,
  };
}

/** Takes the token out of a query. The rest stays as it was written, because servers may read a query in their own way. */
function takeFromQuery(target: string): Pick<Handshake, 'target' | 'token'> {
  const start = target.indexOf('?');
  if (start === -1) return { target, token: undefined };
  const pairs = target
    .slice(start + 1)
    .split('&')
    .map((text) => {
      const [[name, value] = []] = [...new URLSearchParams(text)];
      return { text, name, value };
    });
  const taken = QUERY_NAMES.find((name) => pairs.some((pair) => pair.name === name));
  if (taken === undefined) return { target, token: undefined };
  const rest = pairs.filter(({ name }) => name !== taken).map(({ text }) => text);
  const path = target.slice(0, start);
  return {
    target: rest.length === 0 ? path : `${path}?${rest.join('&')}`,
    token: pairs.find(({ name }) => name === taken)?.value,
  };
}

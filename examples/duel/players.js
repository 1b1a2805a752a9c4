// What the tests do as the developer of the game, and as its players.
const { MUSTER_URL, MUSTER_TOKEN, MUSTER_GAME, MUSTER_NAMESPACE, MUSTER_TEST_CLOCK } = process.env;
if (!MUSTER_TEST_CLOCK) throw new Error('Run these tests by: muster test --deploy -- bun test');

const WAIT_MS = 30_000;
const game = `/cloud/games/${MUSTER_GAME}`;

/**
 * Sends a request, as the developer by default. Returns the body of the answer; throws the code and message of an error.
 */
export async function call(method, path, body, token = MUSTER_TOKEN) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(MUSTER_URL + path, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(`${answer.code}: ${answer.message}`), { answer });
  return answer;
}

/**
 * Makes a namespace on the deployed version, for one test: other tests cannot fill its lobbies. `changes` are merged into
 * the version's configuration of the matchmaker. Returns the namespace's id, and what its players can do.
 */
export async function makeNamespace(changes = {}) {
  const { namespace } = await call('GET', `${game}/namespaces/${MUSTER_NAMESPACE}`);
  const { version } = await call('GET', `${game}/versions/${namespace.version_id}`);
  const { docker, ...matchmaker } = version.config.matchmaker;
  const changed = { ...matchmaker, ...changes, docker: { ...docker, ...changes.docker } };
  const name = `test-${crypto.randomUUID().slice(0, 8)}`;
  const { version_id } = await call('POST', `${game}/versions`, {
    display_name: name,
    config: { matchmaker: changed },
  });
  const { namespace_id } = await call('POST', `${game}/namespaces`, { display_name: name, name_id: name, version_id });
  const { token } = await call('POST', `${game}/namespaces/${namespace_id}/tokens/public`);
  return {
    namespace_id,
    token,
    find: (body) => call('POST', '/matchmaker/lobbies/find', { game_modes: ['default'], ...body }, token),
    join: (lobby_id) => call('POST', '/matchmaker/lobbies/join', { lobby_id }, token),
  };
}

/** Takes a found seat. `last` is the last message from the server. */
export async function connect({ ports, player }, name) {
  const socket = new WebSocket(`ws://${ports.game.host}/?token=${player.token}&name=${name}`);
  const connected = { socket, last: {}, is_closed: false };
  socket.onmessage = ({ data }) => {
    connected.last = JSON.parse(data);
  };
  socket.onclose = () => {
    connected.is_closed = true;
  };
  await until(() => connected.last.hits?.[name] !== undefined || connected.is_closed);
  if (connected.is_closed) throw new Error(`${name} has no seat`);
  return connected;
}

/** Waits until `look` returns something, and returns that. */
export async function until(look) {
  for (const started = performance.now(); performance.now() - started < WAIT_MS; await Bun.sleep(20)) {
    const seen = await look();
    if (seen) return seen;
  }
  throw new Error(`waited in vain: ${look}`);
}

/** Moves the clock of Muster forwards. What is due then happens within seconds. */
export async function advanceClock(milliseconds) {
  const response = await fetch(MUSTER_TEST_CLOCK, {
    method: 'POST',
    body: JSON.stringify({ advance_ms: milliseconds }),
  });
  if (!response.ok) throw new Error(await response.text());
}

/** Solves a proof of work (docs/captcha.md). */
export async function solve({ challenge_url }, token) {
  const challenge = await (await fetch(challenge_url, { headers: { authorization: `Bearer ${token}` } })).json();
  const { nonce, salt, cost, keyLength, keyPrefix } = challenge.parameters;
  const password = new Uint8Array([...Buffer.from(nonce, 'hex'), 0, 0, 0, 0]);
  const derivation = { name: 'PBKDF2', hash: 'SHA-256', salt: Buffer.from(salt, 'hex'), iterations: cost };
  for (let counter = 0; ; counter += 1) {
    new DataView(password.buffer).setUint32(password.length - 4, counter);
    const key = await crypto.subtle.importKey('raw', password, 'PBKDF2', false, ['deriveBits']);
    const derivedKey = Buffer.from(await crypto.subtle.deriveBits(derivation, key, keyLength * 8)).toString('hex');
    if (derivedKey.startsWith(keyPrefix)) return btoa(JSON.stringify({ challenge, solution: { counter, derivedKey } }));
  }
}

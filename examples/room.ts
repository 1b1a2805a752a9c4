// A game server in one file: a room in which players see each other move. Muster runs it as it is, once for each lobby.
const { SERVICE_API_ENDPOINT: api, SERVICE_TOKEN, SERVICE_LOBBY_ID: lobby, PORT_game } = process.env;
const headers = { authorization: `Bearer ${SERVICE_TOKEN}`, 'content-type': 'application/json' };

const players: Record<string, { x: number; y: number }> = {};
/** Tokens of all players who came. Each connects one player, once. */
const tokens = new Set<string>();

const server = Bun.serve<{ id: string; player_token: string }>({
  port: Number(PORT_game),
  async fetch(request) {
    const player_token = new URL(request.url).searchParams.get('token') ?? '';
    if (tokens.has(player_token)) return new Response('this token has been used', { status: 403 });
    tokens.add(player_token);
    if (!(await callMuster('players/connected', { player_token }))) {
      tokens.delete(player_token);
      return new Response('no seat', { status: 403 });
    }
    const id = crypto.randomUUID().slice(0, 8);
    if (!server.upgrade(request, { data: { id, player_token } }))
      await callMuster('players/disconnected', { player_token });
  },
  websocket: {
    open(socket) {
      socket.subscribe('room');
      socket.send(JSON.stringify({ you: socket.data.id, lobby }));
      players[socket.data.id] = { x: 0.1 + 0.8 * Math.random(), y: 0.1 + 0.8 * Math.random() };
      server.publish('room', JSON.stringify(players));
      console.log(`${socket.data.id} has come`);
    },
    message(socket, text) {
      const position = readPosition(String(text));
      if (!position) return socket.close(1007, 'send a position, like {"x": 0.5, "y": 0.5}');
      players[socket.data.id] = position;
      server.publish('room', JSON.stringify(players));
    },
    async close(socket) {
      delete players[socket.data.id];
      server.publish('room', JSON.stringify(players));
      console.log(`${socket.data.id} has left`);
      await callMuster('players/disconnected', { player_token: socket.data.player_token });
    },
  },
});

/**
 * Calls Muster. While Muster is unavailable, tries again; the room goes on meanwhile. Returns whether Muster accepted
 * it.
 */
async function callMuster(path: string, body = {}): Promise<boolean> {
  for (let attempt = 1, pause_ms = 100; ; attempt += 1, pause_ms = Math.min(2 * pause_ms, 5_000)) {
    const request = { method: 'POST', headers, body: JSON.stringify(body), signal: AbortSignal.timeout(10_000) };
    const answer = await fetch(`${api}/matchmaker/${path}`, request)
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch(() => undefined);
    if (answer?.status === 200) return true;
    if (answer && answer.status < 500 && answer.status !== 429) {
      // The answer to an earlier attempt was lost, and that attempt had connected the player.
      if (attempt > 1 && answer.text.includes('MATCHMAKER_PLAYER_ALREADY_CONNECTED')) return true;
      console.error(`${path} was refused: ${answer.text}`);
      return false;
    }
    await Bun.sleep(pause_ms);
  }
}

/** Returns the position in a player's message; undefined if it has none. A bad message must not end the room. */
function readPosition(text: string): { x: number; y: number } | undefined {
  try {
    const { x, y } = JSON.parse(text);
    return Number.isFinite(x) && Number.isFinite(y) ? { x, y } : undefined;
  } catch {
    return undefined;
  }
}

await callMuster('lobbies/ready');
console.log(`lobby ${lobby} is ready at port ${server.port}`);

export {};

// A game server in one file: a room in which players see each other move. Muster runs it as it is, once for each lobby.
const { SERVICE_API_ENDPOINT: api, SERVICE_TOKEN, SERVICE_LOBBY_ID: lobby, PORT_game } = process.env;
const headers = { authorization: `Bearer ${SERVICE_TOKEN}`, 'content-type': 'application/json' };
const tell = (path: string, body = {}) =>
  fetch(`${api}/matchmaker/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });

const players: Record<string, { x: number; y: number }> = {};

const server = Bun.serve<{ id: string; player_token: string }>({
  port: Number(PORT_game),
  async fetch(request) {
    const player_token = new URL(request.url).searchParams.get('token') ?? '';
    // Whoever comes without a good token has no seat here.
    if (!(await tell('players/connected', { player_token })).ok) return new Response('no seat', { status: 403 });
    const id = crypto.randomUUID().slice(0, 8);
    if (!server.upgrade(request, { data: { id, player_token } })) await tell('players/disconnected', { player_token });
  },
  websocket: {
    open(socket) {
      socket.subscribe('room');
      socket.send(JSON.stringify({ you: socket.data.id, lobby }));
      console.log(`${socket.data.id} has come`);
    },
    message(socket, text) {
      players[socket.data.id] = JSON.parse(String(text));
      server.publish('room', JSON.stringify(players));
    },
    async close(socket) {
      delete players[socket.data.id];
      server.publish('room', JSON.stringify(players));
      console.log(`${socket.data.id} has left`);
      await tell('players/disconnected', { player_token: socket.data.player_token });
    },
  },
});

await tell('lobbies/ready');
console.log(`lobby ${lobby} is ready at port ${server.port}`);

export {};

// The server of a duel: the first of two players with three hits wins. `muster test --deploy -- bun test` plays it.
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, PORT_game, WITH_TEST_COMMANDS } = process.env;
const HITS_TO_WIN = 3;

/** The hits of each player, by name. */
const hits = {};

const server = Bun.serve({
  port: PORT_game,
  async fetch(request) {
    const { searchParams } = new URL(request.url);
    const [player_token, name] = [searchParams.get('token'), searchParams.get('name')];
    if (!(await callMuster('players/connected', { player_token }))) return new Response('no seat', { status: 403 });
    if (!server.upgrade(request, { data: { player_token, name } }))
      await callMuster('players/disconnected', { player_token });
  },
  websocket: {
    open(socket) {
      hits[socket.data.name] = 0;
      socket.subscribe('duel');
      server.publish('duel', JSON.stringify({ hits }));
    },
    message(socket, text) {
      const { name } = socket.data;
      // Tests need a crash, which players must not be able to cause.
      if (text === 'crash' && WITH_TEST_COMMANDS === 'yes') process.exit(3);
      if (text !== 'hit') return socket.close(1007, 'send "hit"');
      hits[name] += 1;
      const result = hits[name] === HITS_TO_WIN ? { hits, winner: name } : { hits };
      server.publish('duel', JSON.stringify(result));
    },
    async close({ data: { name, player_token } }) {
      delete hits[name];
      server.publish('duel', JSON.stringify({ hits }));
      await callMuster('players/disconnected', { player_token });
    },
  },
});

/** Calls Muster. Returns whether it agreed. */
async function callMuster(path, body = {}) {
  const response = await fetch(`${SERVICE_API_ENDPOINT}/matchmaker/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${SERVICE_TOKEN}` },
    body: JSON.stringify(body),
  });
  return response.ok;
}

await callMuster('lobbies/ready');

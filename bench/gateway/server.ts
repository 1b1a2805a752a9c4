// The game server of the bench: a small answer to http, and each frame of a WebSocket sent back. `flood` writes 100 MB a
// second to a WebSocket.
const FLOOD_CHUNK = new Uint8Array(256 * 1024);
const FLOOD_PER_SECOND = 100_000_000;
const FLOOD_EVERY_MS = 10;

Bun.serve({
  port: Number(process.env.PORT_web ?? process.argv[2]),
  hostname: '0.0.0.0',
  idleTimeout: 0,
  fetch(request, server) {
    if (server.upgrade(request, { data: undefined })) return undefined;
    return new Response('an answer of the game server');
  },
  websocket: {
    message(socket, data) {
      if (data !== 'flood') return void socket.send(data);
      let owed = 0;
      let last = performance.now();
      const timer = setInterval(() => {
        const now = performance.now();
        owed = Math.min(owed + ((now - last) / 1_000) * FLOOD_PER_SECOND, FLOOD_PER_SECOND / 10);
        last = now;
        for (; owed >= FLOOD_CHUNK.length && socket.readyState === 1; owed -= FLOOD_CHUNK.length) {
          if (socket.send(FLOOD_CHUNK) <= 0) break;
        }
        if (socket.readyState !== 1) clearInterval(timer);
      }, FLOOD_EVERY_MS);
    },
  },
});
console.log('listening');

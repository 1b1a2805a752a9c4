// The load of the bench, in a process of its own: `bun load.ts http|socket|handshake URL HOST CONNECTIONS SECONDS`. Each
// connection has one request or frame under way, or is opened again after its TLS handshake. Prints answers or handshakes a
// second, and quantiles of their times in milliseconds.
export {};

const [kind, url = '', host = '', connections_text, seconds_text] = process.argv.slice(2);
const connections = Number(connections_text);
const seconds = Number(seconds_text);
const BODY_END = 'game server';
const FRAME = 'x'.repeat(64);
const WARM_UP_S = 1;

const times: number[] = [];
let is_measuring = false;
const note = (milliseconds: number) => {
  if (is_measuring) times.push(milliseconds);
};

async function openHttp(): Promise<void> {
  const { hostname, port, pathname } = new URL(url);
  const request = `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  let sent_at = 0;
  let text = '';
  const send = (socket: Bun.Socket) => {
    sent_at = performance.now();
    socket.write(request);
  };
  await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: send,
      data(socket, bytes) {
        text += bytes.toString('latin1');
        if (!text.includes(BODY_END)) return;
        text = '';
        note(performance.now() - sent_at);
        send(socket);
      },
      error() {},
    },
  });
}

async function openSocket(): Promise<void> {
  const socket = new WebSocket(url.replace('http', 'ws'), { headers: { host } } as unknown as string[]);
  let sent_at = 0;
  const send = () => {
    sent_at = performance.now();
    socket.send(FRAME);
  };
  socket.addEventListener('message', () => {
    note(performance.now() - sent_at);
    send();
  });
  await new Promise((resolve) => socket.addEventListener('open', resolve));
  send();
}

/** Opens a TLS connection, closes it and opens the next. */
async function shakeHands(): Promise<void> {
  const { hostname, port } = new URL(url);
  for (;;) {
    const started = performance.now();
    const { promise, resolve } = Promise.withResolvers<void>();
    await Bun.connect({
      hostname,
      port: Number(port),
      tls: { rejectUnauthorized: false },
      socket: {
        handshake(socket) {
          note(performance.now() - started);
          socket.end();
        },
        data() {},
        close: () => resolve(),
        error() {},
      },
    });
    await promise;
  }
}

if (kind === 'handshake') for (let connection = 0; connection < connections; connection += 1) void shakeHands();
else await Promise.all(Array.from({ length: connections }, kind === 'http' ? openHttp : openSocket));
await Bun.sleep(WARM_UP_S * 1_000);
is_measuring = true;
await Bun.sleep(seconds * 1_000);
is_measuring = false;
times.sort((one, other) => one - other);
const quantile = (part: number) => times[Math.floor(times.length * part)] ?? Number.NaN;
console.log(JSON.stringify({ a_second: times.length / seconds, p50_ms: quantile(0.5), p99_ms: quantile(0.99) }));
process.exit(0);

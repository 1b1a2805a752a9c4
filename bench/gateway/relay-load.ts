// The load of the bench, in a process of its own: `bun relay-load.ts tcp|handshake|udp HOST PORT CONNECTIONS SECONDS`. Each
// connection has one message under way (udp: eight). Prints answers or handshakes a second, and quantiles of their times
// in milliseconds.
export {};

const [kind, hostname = '', port_text, connections_text, seconds_text] = process.argv.slice(2);
const [port, connections, seconds] = [Number(port_text), Number(connections_text), Number(seconds_text)];
const WARM_UP_S = 1;
const MESSAGE = Buffer.alloc(100, 7);
const PACKETS_UNDER_WAY = 8;
/** A lost packet ends its exchange, so another one begins this often. */
const REPLACE_EVERY_MS = 200;

const times: number[] = [];
let [count, is_measuring] = [0, false];
const note = (since: number) => {
  if (!is_measuring) return;
  count += 1;
  times.push(performance.now() - since);
};

/** Sends a message, and another one for each answer. */
async function openTcp(): Promise<void> {
  let [sent_at, received] = [0, 0];
  const send = (socket: Bun.Socket) => {
    sent_at = performance.now();
    socket.write(MESSAGE);
  };
  await Bun.connect({
    hostname,
    port,
    socket: {
      open: send,
      data(socket, bytes) {
        received += bytes.length;
        if (received < MESSAGE.length) return;
        received = 0;
        note(sent_at);
        send(socket);
      },
      error() {},
    },
  });
}

/** Opens a TLS connection, exchanges a message and opens the next. */
async function shakeHands(): Promise<void> {
  for (;;) {
    const started = performance.now();
    await new Promise<void>((resolve) => {
      void Bun.connect({
        hostname,
        port,
        tls: { rejectUnauthorized: false },
        socket: {
          handshake: (socket) => void socket.write(MESSAGE),
          data(socket) {
            note(started);
            socket.end();
          },
          close: () => resolve(),
          error() {},
        },
      });
    });
  }
}

/** Keeps some packets under way. */
async function openUdp(): Promise<void> {
  const socket = await Bun.udpSocket({
    connect: { hostname, port },
    socket: {
      data(_, bytes) {
        note(bytes.readDoubleLE(0));
        send();
      },
      error() {},
    },
  });
  const send = () => {
    const packet = Buffer.from(MESSAGE);
    packet.writeDoubleLE(performance.now(), 0);
    socket.send(packet);
  };
  for (let packet = 0; packet < PACKETS_UNDER_WAY; packet += 1) send();
  setInterval(send, REPLACE_EVERY_MS);
}

for (let connection = 0; connection < connections; connection += 1) {
  if (kind === 'tcp') await openTcp();
  else if (kind === 'udp') await openUdp();
  else void shakeHands();
}
await Bun.sleep(WARM_UP_S * 1_000);
is_measuring = true;
const started = performance.now();
await Bun.sleep(seconds * 1_000);
const a_second = (count * 1_000) / (performance.now() - started);
times.sort((one, other) => one - other);
const at = (part: number) => times[Math.floor(part * times.length)] ?? Number.NaN;
console.log(JSON.stringify({ a_second, p50_ms: at(0.5), p99_ms: at(0.99) }));
process.exit(0);

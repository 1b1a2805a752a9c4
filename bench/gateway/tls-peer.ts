// A TLS server by Bun alone, the peer of relays with TLS: `bun tls-peer.ts CERTIFICATE KEY`. Prints its port.
export {};

const [certificate = '', key = ''] = process.argv.slice(2);
const tls = { cert: await Bun.file(certificate).text(), key: await Bun.file(key).text() };
const { port } = Bun.listen({
  hostname: '127.0.0.1',
  port: 0,
  tls,
  socket: { data: (socket, bytes) => void socket.write(bytes), error() {} },
});
console.log(port);

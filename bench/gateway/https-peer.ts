// An https server by Bun alone, the peer of Muster's: `bun https-peer.ts CERTIFICATE KEY`. Prints its port.
export {};

const [certificate = '', key = ''] = process.argv.slice(2);
const tls = { cert: await Bun.file(certificate).text(), key: await Bun.file(key).text() };
const { port } = Bun.serve({ hostname: '127.0.0.1', port: 0, tls, fetch: () => Response.json({ status: 'ok' }) });
console.log(port);

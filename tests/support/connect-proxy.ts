// A proxy that knows nothing but CONNECT, as a process of its own, and takes every name for this machine. Writes its port,
// then each target to which it connects, one a line.
import { connect, createServer } from 'node:net';

const HEAD_END = '\r\n\r\n';

const server = createServer((near) => {
  near.on('error', () => near.destroy());
  near.once('data', (head: Buffer) => {
    const [, name, port] = /^CONNECT (\S+):(\d+) HTTP/.exec(head.toString('latin1')) ?? [];
    if (port === undefined) {
      near.end(`HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close${HEAD_END}`);
      return;
    }
    console.log(`${name}:${port}`);
    const far = connect(Number(port), '127.0.0.1', () => {
      near.write(`HTTP/1.1 200 Connection Established${HEAD_END}`);
      near.pipe(far).pipe(near);
    });
    far.on('error', () => near.destroy());
    near.on('close', () => far.destroy());
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy listens at no port');
  console.log(address.port);
});

// A process with a proxy that accepts only CONNECT, and resolves every name to this machine. It writes its port, and then each
// target to which it connects, one a line.
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

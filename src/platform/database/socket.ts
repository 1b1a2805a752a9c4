import { Socket } from 'node:net';

/** The part of postgres.js's options that says where to connect. */
interface Target {
  host: string[];
  port: number[];
  /** Of a unix socket; false for TCP. */
  path: string | false;
  /** The sslmode; false where none is asked for. */
  ssl: unknown;
}

/** PostgreSQL's whole answer to a client that asks for TLS where it has none. */
const NO_TLS = 'N';
/** Only the eight bytes that ask for TLS are a shorter first message (PostgreSQL documentation, 54.7). */
const CANCEL_REQUEST_BYTES = 16;

/**
 * Connects as postgres.js does, but a connection that is closed without a byte fails its queries. postgres.js would connect
 * again at once, for ever, hundreds of times a second, and leave the query waiting
 * (github.com/porsager/postgres/issues/1193). Load balancers and published ports of containers close like this when the
 * server behind them is down. A server without TLS fails it too, where TLS is asked for: postgres.js would go
 * on, and report a lost connection.
 */
export function openSocket({ host: [host = 'localhost'], port: [port = 5432], path, ssl }: Target): Socket {
  const socket = new Socket();
  if (ssl && ssl !== 'prefer') {
    socket.once('data', (bytes) => {
      if (bytes.toString('latin1') === NO_TLS) socket.destroy(new TlsRefusedError('the server has no TLS'));
    });
  }
  socket.on('close', (had_error) => {
    // The driver does not listen to a socket that it gave up, and PostgreSQL answers a request to cancel by closing.
    const is_awaited = socket.listenerCount('error') > 0 && socket.bytesWritten !== CANCEL_REQUEST_BYTES;
    if (!had_error && is_awaited && socket.bytesRead === 0)
      socket.emit('error', new ClosedError('the server closed the connection'));
  });
  return path === false ? Object.assign(socket.connect(port, host), { host, port }) : socket.connect(path);
}

class ClosedError extends Error {
  readonly code = 'CONNECTION_CLOSED';
}

class TlsRefusedError extends Error {
  readonly code = 'TLS_REFUSED';
}

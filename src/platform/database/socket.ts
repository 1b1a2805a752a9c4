import { Socket } from 'node:net';

/** The part of postgres.js's options that says where to connect. */
interface Target {
  host: string[];
  port: number[];
  /** The path of a unix socket; false for TCP. */
  path: string | false;
  /** The sslmode; false if none is set. */
  ssl: unknown;
}

/** The whole answer of a PostgreSQL without TLS to a client that requests it. */
const NO_TLS = 'N';
/** Length of a request to cancel. Of all first messages only the request for TLS is shorter (PostgreSQL docs, 54.7). */
const CANCEL_REQUEST_BYTES = 16;

/**
 * Opens a socket as postgres.js does, but reports two failures. If the connection is closed without a byte, postgres.js
 * would reconnect hundreds of times a second forever, while the query waits (github.com/porsager/postgres/issues/1193).
 * Load balancers and published ports of containers do that when the server behind them is down. If TLS is required and the
 * server has none, postgres.js would report a lost connection.
 */
export function openSocket({ host: [host = 'localhost'], port: [port = 5432], path, ssl }: Target): Socket {
  const socket = new Socket();
  if (ssl && ssl !== 'prefer') {
    socket.once('data', (bytes) => {
      if (bytes.toString('latin1') === NO_TLS) socket.destroy(new TlsRefusedError('the server has no TLS'));
    });
  }
  socket.on('close', (had_error) => {
    // A socket that the driver gave up is no failure, nor is a request to cancel, which PostgreSQL answers by closing.
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

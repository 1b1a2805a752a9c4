import { connect } from 'node:net';
import type { Answer } from '../api.ts';

/**
 * Sends raw bytes, for requests that no client makes, and returns the answer. The request must say "Connection: close",
 * because the answer ends with the connection.
 */
export async function sendRaw(base_url: string, ...pieces: (string | Uint8Array)[]): Promise<Answer> {
  const { hostname, port } = new URL(base_url);
  const received: Buffer[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect(Number(port), hostname);
  socket.on('data', (bytes: Buffer) => void received.push(bytes));
  // A server that refuses a body may close the connection while it is sent. An answer before that counts.
  socket.on('error', () => resolve());
  socket.on('close', () => resolve());
  for (const piece of pieces) socket.write(piece);
  await promise;
  return readAnswer(Buffer.concat(received).toString());
}

function readAnswer(text: string): Answer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
  const body = rest.join('\r\n\r\n');
  const is_json = headers.get('content-type')?.startsWith('application/json') && body !== '';
  return { status: Number(first.split(' ')[1]), body: is_json ? JSON.parse(body) : body, headers };
}

// The load of `bun bench/watch.ts`: opens sockets, reads the frames and reports when the last socket has each. It
// parses frames itself, which costs less than sending them.
import type { Socket } from 'bun';
import { DIALECTS } from './dialects.ts';
import type { Group, LoadOrder, LoadReport } from './orders.ts';
import { createTally } from './tally.ts';
import { BINARY, encodeFrame, numberAtEnd, PING, PONG, TEXT } from './wire.ts';

/** Maximum number of sockets to open concurrently. */
const OPENING_MAX = 64;
const ACCEPTED = Buffer.from('HTTP/1.1 101');

interface Listener {
  group: Group;
  is_upgraded: boolean;
  /** The beginning of a frame that is not complete yet. */
  rest: Buffer | undefined;
  /** The number of the newest body; undefined before the first. */
  seen: number | undefined;
  onFirst(): void;
}

const report = (what: LoadReport) => process.send?.(what);
const tally = createTally(report);
let dialect = DIALECTS.plain;

process.on('message', async (order: LoadOrder) => {
  if (order.order === 'listen') report({ opened: await openAll(order) });
  if (order.order === 'count') report({ bodies: tally.bodies });
});
// The bench has ended.
process.on('disconnect', () => process.exit());
// Ctrl-C reaches every process of the terminal; the bench ends this one itself.
process.on('SIGINT', () => {});
report({ is_there: true });

async function openAll({ port, dialect: name, groups }: LoadOrder & { order: 'listen' }): Promise<number> {
  dialect = DIALECTS[name];
  const wanted = groups.flatMap((group) => Array.from({ length: group.count }, () => group));
  const all = wanted.length;
  tally.expect(all);
  const openNext = async () => {
    for (let group = wanted.pop(); group; group = wanted.pop()) await open(port, group);
  };
  await Promise.all(Array.from({ length: OPENING_MAX }, openNext));
  return all;
}

/** Opens a socket and waits for its first body. */
async function open(port: number, group: Group): Promise<void> {
  const first = Promise.withResolvers<void>();
  const path = dialect.findPath ? await dialect.findPath(port) : group.path;
  const data: Listener = {
    group,
    is_upgraded: false,
    rest: undefined,
    seen: undefined,
    onFirst: first.resolve,
  };
  const socket = await Bun.connect({ hostname: '127.0.0.1', port, data, socket: { data: read, close: fail } });
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
      `sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n${group.headers}\r\n`,
  );
  await first.promise;
}

function read(socket: Socket<Listener>, chunk: Buffer): void {
  const listener = socket.data;
  const bytes = listener.rest ? Buffer.concat([listener.rest, chunk]) : chunk;
  let at = listener.is_upgraded ? 0 : readUpgrade(socket, bytes);
  while (listener.is_upgraded && bytes.length - at >= 2) {
    let start = at + 2;
    let length = (bytes[at + 1] ?? 0) & 127;
    if (length === 126) {
      if (bytes.length - at < 4) break;
      length = bytes.readUInt16BE(at + 2);
      start = at + 4;
    }
    if (start + length > bytes.length) break;
    if (((bytes[at] ?? 0) & 15) === PING) socket.write(encodeFrame(bytes.subarray(start, start + length), PONG));
    else take(socket, bytes, start, start + length);
    at = start + length;
  }
  listener.rest = at < bytes.length ? Buffer.from(bytes.subarray(at)) : undefined;
}

/** Returns the offset at which the frames begin; 0 while the answer is not complete. */
function readUpgrade(socket: Socket<Listener>, bytes: Buffer): number {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return 0;
  if (!bytes.subarray(0, ACCEPTED.length).equals(ACCEPTED)) throw new Error(bytes.toString());
  socket.data.is_upgraded = true;
  const { greeting } = socket.data.group;
  if (greeting !== undefined) socket.write(encodeFrame(greeting, TEXT));
  return end + 4;
}

function take(socket: Socket<Listener>, bytes: Buffer, start: number, end: number): void {
  if (!dialect.isBody(bytes, start)) {
    const answer = dialect.answer?.(bytes.subarray(start, end));
    if (answer !== undefined) socket.write(encodeFrame(answer, typeof answer === 'string' ? TEXT : BINARY));
    return;
  }
  if (socket.data.seen === undefined) socket.data.onFirst();
  tally.note(socket.data, numberAtEnd(bytes, end));
}

function fail(): void {
  console.error('a socket was closed by the server');
  process.exit(1);
}

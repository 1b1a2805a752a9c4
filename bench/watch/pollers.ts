// The load of `bun bench/watch.ts`: holds long polls, polls again after each answer, and reports when the last poll was
// answered.
import type { Socket } from 'bun';
import type { LoadOrder, LoadReport } from './orders.ts';
import { createTally } from './tally.ts';
import { numberAtEnd } from './wire.ts';

const OPENING_MAX = 64;
const BRACE = 0x7d;

interface Poller {
  path: string;
  headers: string;
  rest: Buffer | undefined;
  seen: number | undefined;
  onFirst(): void;
}

const report = (what: LoadReport) => process.send?.(what);
const tally = createTally(report);

process.on('message', async (order: LoadOrder) => {
  if (order.order === 'poll') report({ opened: await openAll(order) });
  if (order.order === 'count') report({ bodies: tally.bodies });
});
// The bench has ended.
process.on('disconnect', () => process.exit());
// Ctrl-C reaches every process of the terminal; the bench ends this one itself.
process.on('SIGINT', () => {});
report({ is_there: true });

async function openAll({ port, groups }: LoadOrder & { order: 'poll' }): Promise<number> {
  const wanted = groups.flatMap((group) => Array.from({ length: group.count }, () => group));
  const all = wanted.length;
  tally.expect(all);
  const openNext = async () => {
    for (let group = wanted.pop(); group; group = wanted.pop()) {
      const first = Promise.withResolvers<void>();
      const { path } = group;
      const headers = ` HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${group.headers}\r\n`;
      const data: Poller = { path, headers, rest: undefined, seen: undefined, onFirst: first.resolve };
      const socket = await Bun.connect({ hostname: '127.0.0.1', port, data, socket: { data: read, close: fail } });
      // Without an index, the server answers with the present state at once.
      socket.write(`GET ${path.slice(0, path.indexOf('?'))}${headers}`);
      await first.promise;
    }
  };
  await Promise.all(Array.from({ length: OPENING_MAX }, openNext));
  return all;
}

/** Reads answers. A body ends with two braces, which occur nowhere else in an answer. */
function read(socket: Socket<Poller>, chunk: Buffer): void {
  const poller = socket.data;
  const bytes = poller.rest ? Buffer.concat([poller.rest, chunk]) : chunk;
  const end = bytes.length;
  if (bytes[end - 1] !== BRACE || bytes[end - 2] !== BRACE) {
    poller.rest = Buffer.from(bytes);
    return;
  }
  if (!bytes.subarray(0, 12).equals(OK)) throw new Error(bytes.toString());
  poller.rest = undefined;
  const number = numberAtEnd(bytes, end);
  if (poller.seen === undefined) poller.onFirst();
  tally.note(poller, number);
  socket.write(`GET ${poller.path}${number}${poller.headers}`);
}

const OK = Buffer.from('HTTP/1.1 200');

function fail(): void {
  console.error('a connection was closed by the server');
  process.exit(1);
}

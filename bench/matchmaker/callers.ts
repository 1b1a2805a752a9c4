// A process that makes requests as fast as they are answered, or at a rate: the load of `bun bench/matchmaker.ts`.
import type { Socket } from 'bun';
import type { CallOrder, CallReport } from './calls.ts';

interface Client {
  socket: Socket<Client>;
  text: string;
  sent_at: number;
}

const LENGTH = 'content-length: ';
const SAMPLES_MAX = 200_000;

let clients: Client[] = [];
let idle: Client[] = [];
let next: (client: Client) => void = () => {};
let host = '';
let answered = 0;
let kept: string[] | undefined;
let failures = new Map<string, number>();
const samples = new Float64Array(SAMPLES_MAX);

const report = (what: CallReport) => process.send?.(what);
process.on('message', async (order: CallOrder) => {
  if (order.order === 'open') await open(order.port, order.clients);
  if (order.order === 'call') report(await call(order));
  if (order.order === 'close') process.exit();
});
process.on('disconnect', () => process.exit());
report({ is_there: true });

async function open(port: number, count: number): Promise<void> {
  for (const { socket } of clients) socket.end();
  clients = [];
  host = `127.0.0.1:${port}`;
  while (clients.length < count) {
    const client = { text: '', sent_at: 0 } as Client;
    client.socket = await Bun.connect({ hostname: '127.0.0.1', port, data: client, socket: { data: read } });
    clients.push(client);
  }
  report({ opened: count });
}

async function call({ path, headers, bodies, seconds, per_second, count_max, keeps }: CallOrder & { order: 'call' }) {
  const requests = bodies.map((body) => {
    const length = Buffer.byteLength(body);
    return `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n${headers}content-length: ${length}\r\n\r\n${body}`;
  });
  answered = 0;
  failures = new Map();
  kept = keeps ? [] : undefined;
  let sent = 0;
  const started = performance.now();
  const end = started + seconds * 1_000;
  const over = Promise.withResolvers<void>();
  let under_way = 0;
  const send = (client: Client, at: number) => {
    client.sent_at = at;
    client.socket.write(requests[sent % requests.length] ?? '');
    sent += 1;
    under_way += 1;
  };
  const isOver = () => performance.now() >= end || sent >= count_max;
  if (per_second === undefined) {
    next = (client) => {
      under_way -= 1;
      if (!isOver()) send(client, performance.now());
      else if (under_way === 0) over.resolve();
    };
    for (const client of clients) if (sent < count_max) send(client, performance.now());
  } else {
    // Each has a moment at which it is due, and is late from then on, whether somebody is free to send it or not.
    idle = [...clients];
    const dueAt = (index: number) => started + (index * 1_000) / per_second;
    const sendDue = () => {
      while (idle.length > 0 && !isOver() && dueAt(sent) <= performance.now()) {
        const client = idle.pop();
        if (client) send(client, dueAt(sent));
      }
      if (isOver() && under_way === 0) over.resolve();
    };
    next = (client) => {
      under_way -= 1;
      idle.push(client);
      sendDue();
    };
    while (!isOver()) {
      sendDue();
      await Bun.sleep(1);
    }
    sendDue();
  }
  await over.promise;
  const all = samples.slice(0, Math.min(answered, SAMPLES_MAX)).sort();
  const at = (part: number) => all[Math.min(all.length - 1, Math.floor(part * all.length))] ?? Number.NaN;
  return {
    answered,
    seconds: (performance.now() - started) / 1_000,
    p50: at(0.5),
    p99: at(0.99),
    failures: Object.fromEntries(failures),
    ...(kept ? { kept } : {}),
  };
}

function read({ data: client }: Socket<Client>, chunk: Buffer): void {
  client.text += chunk.toString('latin1');
  const { text } = client;
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return;
  const length_at = text.toLowerCase().indexOf(LENGTH);
  const length = Number.parseInt(text.slice(length_at + LENGTH.length, length_at + LENGTH.length + 9), 10);
  if (text.length < head + 4 + length) return;
  client.text = '';
  samples[answered % SAMPLES_MAX] = performance.now() - client.sent_at;
  answered += 1;
  const status = text.slice(9, 12);
  if (status !== '200') {
    const what = `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ''}`;
    failures.set(what, (failures.get(what) ?? 0) + 1);
  } else kept?.push(text.slice(head + 4));
  next(client);
}

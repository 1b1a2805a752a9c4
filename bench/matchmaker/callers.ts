// Makes the requests of benches that measure the matchmaker: as fast as they are answered, or at a rate.
import type { Socket } from 'bun';
import type { Called, CallOrder, CallReport, Calls } from './calls.ts';

interface Client {
  socket: Socket<Client>;
  /** The part of the answer that has arrived. */
  text: string;
  /** When the request was due. */
  due_at: number;
}

/** A request in two parts; its client's address comes between them. */
interface Template {
  head: string;
  tail: string;
}

const CONTENT_LENGTH = /content-length: (\d+)/i;
const SAMPLES_MAX = 200_000;

let clients: Client[] = [];
let host = '';
let onAnswer: (client: Client) => void = () => {};
/** Requests since this process started: each gets another address. */
let sent_ever = 0;

let answered = 0;
let answers: string[] | undefined;
let failures = new Map<string, number>();
const samples = new Float64Array(SAMPLES_MAX);

const report = (what: CallReport) => process.send?.(what);
process.on('message', async (order: CallOrder) => {
  if (order.order === 'open') await open(order.port, order.clients);
  if (order.order === 'call') report(await call(order));
});
// The bench has ended.
process.on('disconnect', () => process.exit());
// Ctrl-C reaches every process of the terminal; the bench ends this one itself.
process.on('SIGINT', () => {});
report({ is_there: true });

async function open(port: number, count: number): Promise<void> {
  for (const { socket } of clients) socket.end();
  clients = [];
  host = `127.0.0.1:${port}`;
  while (clients.length < count) {
    const client = { text: '', due_at: 0 } as Client;
    client.socket = await Bun.connect({ hostname: '127.0.0.1', port, data: client, socket: { data: read } });
    clients.push(client);
  }
  report({ opened: count });
}

async function call(calls: Calls): Promise<Called> {
  answered = 0;
  failures = new Map();
  answers = calls.keeps_answers ? [] : undefined;
  const started = performance.now();
  await (calls.per_second === undefined ? callInSuccession(calls) : callAtRate(calls, calls.per_second));
  const seconds = (performance.now() - started) / 1_000;
  const sorted = samples.slice(0, Math.min(answered, SAMPLES_MAX)).sort();
  const percentile = (part: number) => sorted[Math.floor(part * sorted.length)] ?? Number.NaN;
  return {
    answered,
    seconds,
    p50_ms: percentile(0.5),
    p99_ms: percentile(0.99),
    failures: Object.fromEntries(failures),
    answers: answers ?? [],
  };
}

/** Lets each client send a request when it has the answer to its last one. */
async function callInSuccession({ path, requests, seconds, requests_max = Number.MAX_SAFE_INTEGER }: Calls) {
  const templates = templatesOf(path, requests);
  const end = performance.now() + seconds * 1_000;
  const done = Promise.withResolvers<void>();
  let sent = 0;
  let under_way = 0;
  const sendNext = (client: Client) => {
    const now = performance.now();
    if (sent >= requests_max || now >= end) return false;
    send(client, templates[sent % templates.length], now);
    sent += 1;
    under_way += 1;
    return true;
  };
  onAnswer = (client) => {
    under_way -= 1;
    if (!sendNext(client) && under_way === 0) done.resolve();
  };
  for (const client of clients) sendNext(client);
  if (under_way === 0) done.resolve();
  await done.promise;
}

/** Sends requests at a rate. Latency counts from the moment at which a request was due, also if no client was free. */
async function callAtRate({ path, requests, seconds }: Calls, per_second: number) {
  const templates = templatesOf(path, requests);
  const count = Math.floor(seconds * per_second);
  const started = performance.now();
  const idle = [...clients];
  const done = Promise.withResolvers<void>();
  let sent = 0;
  const sendDue = () => {
    for (;;) {
      const due_at = started + (sent * 1_000) / per_second;
      if (sent === count || due_at > performance.now()) return;
      const client = idle.pop();
      if (!client) return;
      send(client, templates[sent % templates.length], due_at);
      sent += 1;
    }
  };
  onAnswer = (client) => {
    idle.push(client);
    sendDue();
    if (answered === count) done.resolve();
  };
  while (sent < count) {
    sendDue();
    await Bun.sleep(1);
  }
  await done.promise;
}

function templatesOf(path: string, requests: Calls['requests']): Template[] {
  return requests.map(({ headers, body }) => ({
    head: `POST ${path} HTTP/1.1\r\nhost: ${host}\r\n${headers}x-forwarded-for: `,
    tail: `\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  }));
}

function send(client: Client, template: Template | undefined, due_at: number): void {
  if (!template) throw new Error('there are no requests to make');
  client.due_at = due_at;
  client.socket.write(template.head + nextAddress() + template.tail);
}

/** Returns the addresses of 10.0.0.0/8, one after the other. */
function nextAddress(): string {
  sent_ever += 1;
  return `10.${(sent_ever >> 16) & 255}.${(sent_ever >> 8) & 255}.${sent_ever & 255}`;
}

function read({ data: client }: Socket<Client>, chunk: Buffer): void {
  client.text += chunk.toString('latin1');
  const { text } = client;
  const head_end = text.indexOf('\r\n\r\n');
  if (head_end < 0) return;
  const body_start = head_end + 4;
  const length = Number(CONTENT_LENGTH.exec(text)?.[1] ?? 0);
  if (text.length < body_start + length) return;
  client.text = '';
  samples[answered % SAMPLES_MAX] = performance.now() - client.due_at;
  answered += 1;
  const status = text.slice(9, 12);
  if (status === '200') answers?.push(text.slice(body_start));
  else noteFailure(`${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ''}`);
  onAnswer(client);
}

function noteFailure(what: string): void {
  failures.set(what, (failures.get(what) ?? 0) + 1);
}

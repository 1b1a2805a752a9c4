// The minimum cost of pushing and of long polls: Bun's server alone. Each line of its input says what to publish.
import { argv } from 'node:process';

const [template = '', takes = 'each'] = argv.slice(2);
const numbers = new Map<string, number>();
const waiting = new Map<string, ((response: Response) => void)[]>();
const textOf = (topic: string) => template.replace('NUMBER', String(numbers.get(topic) ?? 0));
const frameOf = (topic: string) => `{"type":"body","key":"k1","body":${textOf(topic)}}`;
const HEADERS = { headers: { 'content-type': 'application/json;charset=utf-8' } };

const server = Bun.serve<string>({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 120,
  fetch(request, this_server) {
    const { url } = request;
    const query = url.indexOf('?', 10);
    const topic = url.slice(url.indexOf('/', 10) + 1, query < 0 ? undefined : query);
    if (this_server.upgrade(request, { data: topic })) return undefined;
    const index = query < 0 ? '' : url.slice(url.lastIndexOf('.') + 1);
    if (index !== String(numbers.get(topic) ?? 0)) return new Response(textOf(topic), HEADERS);
    return new Promise<Response>((resolve) => {
      const waiters = waiting.get(topic) ?? [];
      waiting.set(topic, waiters);
      waiters.push(resolve);
    });
  },
  websocket: {
    open(socket) {
      socket.subscribe(socket.data);
      socket.send(frameOf(socket.data));
    },
    message() {},
  },
});
console.log(server.port);

for await (const line of console) {
  const [scenario, count, number] = line.split(' ');
  for (let topic = 0; topic < Number(count); topic += 1) change(`${scenario}:${topic}`, Number(number));
  // Otherwise lines that came meanwhile would be sent in one packet with this one.
  if (takes === 'each') await new Promise((resolve) => setImmediate(resolve));
}
// The end of standard input means that the bench has ended.
process.exit();

function change(topic: string, number: number): void {
  numbers.set(topic, number);
  server.publish(topic, frameOf(topic));
  const text = textOf(topic);
  const waiters = waiting.get(topic) ?? [];
  waiting.delete(topic);
  for (const resolve of waiters) resolve(new Response(text, HEADERS));
}

import { CONTAINER_RUNTIME } from './runtimes.ts';

// A service that starts a container and is killed meanwhile. The order of the start comes from standard input.
const [directory = ''] = process.argv.slice(2);
const runtime = await CONTAINER_RUNTIME.open(directory);
const order = JSON.parse(await Bun.stdin.text());
console.log('starting');
await runtime.start(order);
await Bun.sleep(60_000);

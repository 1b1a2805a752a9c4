import { EngineClient } from '../../../src/features/servers/runtimes/engine/engine-client.ts';
import { openEngineRuntime } from '../../../src/features/servers/runtimes/engine/engine-runtime.ts';

// A service that starts a container by an engine and is killed meanwhile. Its options and the order come by standard input.
const { socket, options, order } = JSON.parse(await Bun.stdin.text());
const runtime = openEngineRuntime({ ...options, client: new EngineClient(socket) });
console.log('starting');
await runtime.start(order);
await Bun.sleep(60_000);

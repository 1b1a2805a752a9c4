// How long the service takes until it is ready, at its first start and later: `bun bench/start.ts`. The peer is the
// least it could be: the embedded PostgreSQL alone, made (initdb) or started, in the same run.
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openEmbeddedPostgres } from '../src/platform/database/embedded.ts';
import { commandOf, makeHome } from '../tests/support/program.ts';
import { makeDataDirectory } from '../tests/support/service.ts';
import { report, type Samples } from './samples.ts';

const ROUNDS = 7;

const kinds = existsSync('dist/muster') ? (['source', 'executable'] as const) : (['source'] as const);
const first: Samples[] = [{ name: 'PostgreSQL alone', milliseconds: [] }];
const later: Samples[] = [{ name: 'PostgreSQL alone', milliseconds: [] }];
for (const kind of kinds) for (const list of [first, later]) list.push({ name: `muster, ${kind}`, milliseconds: [] });
const add = (list: Samples[], index: number, value: number) => list[index]?.milliseconds.push(value);

for (let round = 0; round < ROUNDS; round += 1) {
  await measurePostgres();
  for (const [index, kind] of kinds.entries()) {
    await using home = await makeHome();
    const options = { command: commandOf(kind) };
    for (const list of [first, later]) {
      const started = performance.now();
      const program = await home.start(options);
      add(list, index + 1, performance.now() - started);
      await program.stop('SIGINT');
    }
  }
}

report('First start: to answering /health/ready, with the demo made', first);
report('Later start', later);
if (kinds.length === 1) console.log('\nNot measured: the executable (bun run build).');

async function measurePostgres(): Promise<void> {
  const directory = await makeDataDirectory();
  const files_directory = join(directory, 'files');
  await mkdir(files_directory, { mode: 0o755 });
  const options = { directory, files_directory, is_durable: true, events: { emit() {} } };
  for (const list of [first, later]) {
    const started = performance.now();
    const server = await openEmbeddedPostgres(options);
    add(list, 0, performance.now() - started);
    await server[Symbol.asyncDispose]();
  }
  await rm(directory, { recursive: true, force: true });
}

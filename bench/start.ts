// Measures how long the service takes to be ready, at its first start and at a later one: `bun bench/start.ts`. The
// peer is the embedded PostgreSQL alone, created (initdb) or started, in the same run.
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openEmbeddedPostgres } from '../src/platform/database/embedded.ts';
import { signalProcess } from '../src/platform/system/processes.ts';
import { findProcessesOf } from '../tests/support/processes.ts';
import { commandOf, makeHome } from '../tests/support/program.ts';
import { makeDataDirectory } from '../tests/support/service.ts';
import { runBench } from './run.ts';
import { report, type Samples } from './samples.ts';

const REPETITIONS = 7;

const kinds = existsSync('dist/muster') ? (['source', 'executable'] as const) : (['source'] as const);
const first: Samples[] = [{ name: 'PostgreSQL alone', milliseconds: [] }];
const later: Samples[] = [{ name: 'PostgreSQL alone', milliseconds: [] }];
for (const kind of kinds) for (const list of [first, later]) list.push({ name: `muster, ${kind}`, milliseconds: [] });
const add = (list: Samples[], index: number, value: number) => list[index]?.milliseconds.push(value);

await runBench(async (opened) => {
  for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
    await using opened_for_repetition = opened.use(new AsyncDisposableStack());
    await measurePostgres(opened_for_repetition);
    for (const [index, kind] of kinds.entries()) {
      const home = opened_for_repetition.use(await makeHome());
      const options = { command: commandOf(kind) };
      for (const list of [first, later]) {
        const started = performance.now();
        const program = await home.start(options);
        add(list, index + 1, performance.now() - started);
        await program.stop('SIGINT');
      }
    }
  }

  report('First start: to answering /health/ready, demo included', first);
  report('Later start', later);
  if (kinds.length === 1) console.log('\nNot measured: the executable (bun run build).');
});

async function measurePostgres(opened: AsyncDisposableStack): Promise<void> {
  const directory = await makeDataDirectory();
  opened.defer(async () => {
    for (const pid of findProcessesOf(directory)) signalProcess(pid, 'SIGQUIT');
    await rm(directory, { recursive: true, force: true });
  });
  const programs_directory = join(directory, 'files');
  await mkdir(programs_directory, { mode: 0o755 });
  const options = { directory, programs_directory, is_durable: true, events: { emit() {} } };
  for (const list of [first, later]) {
    const started = performance.now();
    const server = await openEmbeddedPostgres(options);
    add(list, 0, performance.now() - started);
    await server[Symbol.asyncDispose]();
  }
}

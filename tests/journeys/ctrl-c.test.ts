import { expect, test } from 'bun:test';
import { signalProcess } from '../../src/platform/system/processes.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { findSeatInDemo } from '../support/lobbies/players.ts';
import { postgresOf } from '../support/processes.ts';
import { type Home, makeHome } from '../support/program.ts';
import { openTerminal, readmeStartCommand, waitForOutput } from '../support/terminal.ts';
import { waitFor } from '../support/wait.ts';

const ROUNDS = IS_FULL_LENGTH ? 10 : 2;

/** Waits until everything that the program started has ended, which may be after `npx` returned. */
async function expectNothingLeft(home: Home): Promise<void> {
  await waitFor(() => home.processes().length === 0, 'PostgreSQL and all game servers to end');
}

test(`ctrl-C: one press in a terminal, with the README's command, leaves nothing running (${ROUNDS} times)`, async () => {
  await using home = await makeHome();
  const command = await readmeStartCommand();
  for (let round = 0; round < ROUNDS; round += 1) {
    const terminal = openTerminal(command, home.environment);
    await waitForOutput(terminal, 'service_started');
    await findSeatInDemo(home.url);
    terminal.pressCtrlC();
    await terminal.exited;
    await expectNothingLeft(home);
    expect(terminal.output()).toContain('Stopping the service and its game servers.');
  }
}, 600_000);

test('ctrl-C: repeated signals of one press count as one request', async () => {
  await using home = await makeHome({}, { has_prepared_database: true });
  const { url, pid, exited } = await home.start();
  await findSeatInDemo(url);
  // Apart from each other, because the kernel merges pending signals.
  for (let sent = 0; sent < 10; sent += 1) {
    signalProcess(pid, 'SIGINT');
    await Bun.sleep(2);
  }
  expect(await exited).toBe(0);
  expect(home.processes()).toEqual([]);
}, 300_000);

test('ctrl-C: a press during the start leaves no PostgreSQL behind', async () => {
  await using home = await makeHome();
  const launched = home.launch();
  await waitFor(() => hasPostgres(home), 'PostgreSQL to start');
  expect(await launched.stop('SIGINT')).toBe(0);
  expect(home.processes()).toEqual([]);
}, 300_000);

test('ctrl-C: a second press ends the program at once, and the next start takes over what still runs', async () => {
  await using home = await makeHome({}, { has_prepared_database: true });
  const { pid, output, exited } = await home.start();
  const postmaster = postgresOf(home.data_directory);
  // A stopped postmaster cannot end, so the program would wait for it.
  process.kill(postmaster, 'SIGSTOP');
  try {
    process.kill(pid, 'SIGINT');
    await waitForOutput({ output }, 'Press ctrl-C again');
    const presses = setInterval(() => process.kill(pid, 'SIGINT'), 300);
    expect(await exited.finally(() => clearInterval(presses))).toBe(130);
  } finally {
    process.kill(postmaster, 'SIGCONT');
  }
  const next = await home.start();
  expect(await next.stop('SIGINT')).toBe(0);
  expect(home.processes()).toEqual([]);
}, 300_000);

/** Returns whether a postmaster runs, which would outlive the program. */
function hasPostgres({ data_directory }: Home): boolean {
  try {
    return postgresOf(data_directory) > 0;
  } catch {
    return false;
  }
}

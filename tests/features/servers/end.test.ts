import { beforeAll, describe, expect, test } from 'bun:test';
import { describeEnd, type EndFacts, hasCrashed } from '../../../src/features/servers/end-description.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { serversOf } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const RUNNING: EndFacts = {
  exit_code: null,
  exit_signal: null,
  failure: null,
  kill_at: null,
  has_lost_machine: false,
};
const KILL_AT = new Date();

test.each<[ending: Partial<EndFacts>, has_crashed: boolean, description: string]>([
  [{ exit_code: 0 }, false, 'ended with exit code 0'],
  [{ exit_code: 3 }, true, 'ended with exit code 3'],
  [{ exit_code: 127 }, true, 'ended with exit code 127 (its program was not found)'],
  [{ exit_signal: 'SIGSEGV' }, true, 'was ended by the signal SIGSEGV (a segmentation fault)'],
  [{ exit_signal: 'SIGUSR1' }, true, 'was ended by the signal SIGUSR1'],
  [
    { exit_signal: 'SIGKILL', failure: 'it exceeded its memory of 64 MiB' },
    true,
    'failed: it exceeded its memory of 64 MiB',
  ],
  // Its end was requested, so the way in which it ended is no crash.
  [{ exit_signal: 'SIGKILL', kill_at: KILL_AT }, false, 'was ended by the signal SIGKILL (it was killed)'],
  [{ exit_code: 3, kill_at: KILL_AT }, false, 'ended with exit code 3'],
  [{ kill_at: KILL_AT }, false, 'ended before it had run'],
  // Nothing is known of its program.
  [{ failure: 'its machine was lost', has_lost_machine: true }, false, 'was lost with its machine'],
  [{ failure: 'its node was lost', has_lost_machine: true }, false, 'was lost: its node was lost'],
  // The machine asked the program to end, which did so.
  [
    { exit_code: 0, failure: 'its pod was deleted from the cluster', has_lost_machine: true },
    false,
    'was lost: its pod was deleted from the cluster',
  ],
])("a server's end %j: crash %p, %s", (ending, has_crashed, description) => {
  expect(hasCrashed({ ...RUNNING, ...ending })).toBe(has_crashed);
  expect(describeEnd({ ...RUNNING, ...ending })).toBe(description);
});

describe("a server's end, as its developer reads it", () => {
  const muster = shareService();
  let game: TestGame;
  let servers: ReturnType<typeof serversOf>;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    servers = serversOf(muster, game);
  });

  const read = (server_id: string, token = game.cloud_token) =>
    muster.api.get(`${servers.path}/${server_id}/end`, token);
  const ended = (server_id: string) =>
    waitFor(async () => (await read(server_id)).body.end, 'the server to have ended');

  test('is refused for an unknown server, and for the server of another tenant', async () => {
    expect(outcomeOf(await read(crypto.randomUUID()))).toBe('404 SERVERS_SERVER_NOT_FOUND');
    const other = await makeGame(muster.api, muster.administrator_token);
    const server_id = await servers.run('exit 1');
    expect(outcomeOf(await read(server_id, other.cloud_token))).toBe('404 GAME_NOT_FOUND');
    expect(
      outcomeOf(await muster.api.get(`${serversOf(muster, other).path}/${server_id}/end`, other.cloud_token)),
    ).toBe('404 SERVERS_SERVER_NOT_FOUND');
  });

  test('is absent while the server runs', async () => {
    const server_id = await servers.run('exec sleep 1000');
    await servers.waitForStart(server_id);
    const { status, body } = await read(server_id);
    expect([status, body.end]).toEqual([200, undefined]);
    await servers.destroy(server_id, '?override_kill_timeout=0');
  });

  test('after a crash has the exit code in words and the last lines of both streams, also in the log', async () => {
    const server_id = await servers.run('seq 1 30; echo "no such map" >&2; exit 3');
    const { has_crashed, summary, exit_code, exit_signal, last_lines } = await ended(server_id);
    expect({ has_crashed, summary, exit_code, exit_signal }).toEqual({
      has_crashed: true,
      summary: 'The server ended with exit code 3.',
      exit_code: 3,
      exit_signal: undefined,
    });
    expect(last_lines).toHaveLength(20);
    const texts = (stream: string) =>
      last_lines.flatMap((line: { stream: string; text: string }) => (line.stream === stream ? [line.text] : []));
    expect(texts('std_out').at(-1)).toBe('30');
    expect(texts('std_err')).toEqual(['no such map', '[muster] the server ended with exit code 3']);
    expect(await servers.linesOf(server_id, 'std_err')).toEqual(texts('std_err'));
    expect(
      muster.events.find((event) => event.event === 'server_ended' && event.server_id === server_id),
    ).toMatchObject({ crash: 'it ended with exit code 3' });
  });

  test('after a signal names the signal and what it means', async () => {
    const server_id = await servers.run('kill -SEGV $$');
    expect(await ended(server_id)).toMatchObject({
      has_crashed: true,
      summary: 'The server was ended by the signal SIGSEGV (a segmentation fault).',
      exit_signal: 'SIGSEGV',
    });
  });

  test('that was requested is no crash, and adds nothing to the log', async () => {
    const server_id = await servers.run("trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done");
    await servers.waitForLines(server_id, 1);
    await servers.destroy(server_id);
    expect(await ended(server_id)).toMatchObject({ has_crashed: false, exit_code: 3 });
    expect((await servers.linesOf(server_id, 'std_err')).filter((line) => line.startsWith('[muster]'))).toEqual([]);
  });
});

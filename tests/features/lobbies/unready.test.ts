import { expect, test } from 'bun:test';
import type { Answer } from '../../support/api.ts';
import { listServers, type TestGame } from '../../support/game.ts';
import { connectGameServer, find, makeControlledGame, waitForFirstLobby } from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();
/** Long enough for a server to start on a busy machine. */
const REQUEST_TIMEOUT_MS = 8_000;
const impatient = shareService({
  MUSTER_REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
  MUSTER_WATCH_HOLD_MS: '1000',
});

const SILENT = "console.error('waiting for the map'); setInterval(() => {}, 1000);";

/** Returns what a server printed to a stream. */
async function readLog(
  { game_id, namespace_id, cloud_token }: TestGame,
  server_id: string,
  stream: 'std_out' | 'std_err' = 'std_err',
): Promise<string> {
  const path = `/games/${game_id}/environments/${namespace_id}/servers/${server_id}/logs?stream=${stream}`;
  const { lines } = await muster.api.ok('GET', path, { token: cloud_token });
  return lines.map(atob).join('\n');
}

test("unready: after 10 s the service's log and the server's log say once that lobbies/ready is missing", async () => {
  const game = await makeControlledGame(muster, {
    source: `${SILENT} setTimeout(console.log, 1000, 'still waiting');`,
  });
  const leaving = new AbortController();
  const finding = find(muster, game, {}, leaving.signal).catch(() => undefined);
  const lobby_id = await waitForFirstLobby(muster, game);
  const [server] = await listServers(muster, game);
  const hints = () => muster.events.filter((one) => one.event === 'lobby_not_ready' && one.lobby_id === lobby_id);
  await waitFor(async () => (await readLog(game, server.id)).includes('the map'), 'the first line');
  await waitFor(async () => (await readLog(game, server.id, 'std_out')) !== '', 'the second line');
  expect(hints()).toEqual([]);

  muster.clock.advance(11_000);
  const [hint] = await waitFor(() => hints().length > 0 && hints(), 'the hint');
  expect(hint).toMatchObject({ server_id: server.id, last_lines: ['waiting for the map', 'still waiting'] });
  expect(hint).toMatchObject({ hint: expect.stringContaining('POST /matchmaker/lobbies/ready') });
  expect(await readLog(game, server.id)).toMatch(
    /^waiting for the map\n\[muster\] .*POST \/matchmaker\/lobbies\/ready/,
  );

  // When the other lobby has ended, this one has been checked again.
  const other = await makeControlledGame(muster, { source: 'process.exit(0);' });
  await find(muster, other);
  expect(hints()).toHaveLength(1);
  leaving.abort();
  await finding;
});

test('unready: a server that calls ready in time gets no hint', async () => {
  const game = await makeControlledGame(muster);
  const { body } = await find(muster, game);
  const game_server = await connectGameServer(muster, game, body.lobby.lobby_id);
  muster.clock.advance(11_000);
  const silent = await makeControlledGame(muster, { source: SILENT });
  const leaving = new AbortController();
  const finding = find(muster, silent, {}, leaving.signal).catch(() => undefined);
  const lobby_id = await waitForFirstLobby(muster, silent);
  await waitFor(async () => (await listServers(muster, silent))[0]?.started_at, 'the silent server to start');
  muster.clock.advance(11_000);
  const hinted = () => muster.events.flatMap((one) => (one.event === 'lobby_not_ready' ? [one.lobby_id] : []));
  await waitFor(() => hinted().includes(lobby_id), 'the hint for the silent one');
  expect(hinted()).not.toContain(game_server.lobby_id);
  leaving.abort();
  await finding;
});

test('unready: the answer of a find that times out says that the server has not called ready, and where its log is', async () => {
  const game = await makeControlledGame(impatient, { source: SILENT });
  const answer = await find(impatient, game);
  expect(outcomeOf(answer)).toBe('503 MATCHMAKER_LOBBY_NOT_READY');
  const [server] = await listServers(impatient, game, { include_destroyed: true });
  expect(answer.body.message).toBe(
    `The lobby was not ready within ${REQUEST_TIMEOUT_MS} ms: its server is running, but has not called POST /matchmaker/lobbies/ready. See the log of server ${server.id}.`,
  );
  expect(answer.body.metadata).toEqual({ server_id: server.id });
});

/** How a server ends before it is ready, and what its players see. */
const ENDS: [string, string, object][] = [
  ["console.error('no map'); process.exit(3);", 'its server ended with exit code 3 before it called', { exit_code: 3 }],
  ['process.exit(0);', 'its server ended with exit code 0 before it called', { exit_code: 0 }],
  [
    "process.kill(process.pid, 'SIGKILL');",
    'its server was ended by the signal SIGKILL (it was killed) before it called',
    { exit_signal: 'SIGKILL' },
  ],
];

test.each(ENDS)(
  'unready: the answer of a find whose server ends at once (%s) says how, and does not suggest another find',
  async (source, reason, end) => {
    const game = await makeControlledGame(muster, { source });
    const answer: Answer = await find(muster, game);
    expect(outcomeOf(answer)).toBe('400 MATCHMAKER_LOBBY_STOPPED');
    expect(answer.body.message).toStartWith(`The lobby has stopped: ${reason} POST /matchmaker/lobbies/ready.`);
    expect(answer.body.message).not.toMatch(/find another|try again/i);
    // The answer is for players; the server's output is for its developer.
    expect(answer.body.message).not.toContain('no map');
    const [server] = await listServers(muster, game, { include_destroyed: true });
    expect(answer.body.metadata).toEqual({ server_id: server.id, exit_code: null, exit_signal: null, ...end });
  },
);

test('unready: the answer of a find whose lobby a developer ends does not blame the server', async () => {
  const game = await makeControlledGame(muster, { is_ready: false });
  const finding = find(muster, game);
  const lobby_id = await waitForFirstLobby(muster, game);
  const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`;
  expect(await muster.api.ok('DELETE', path, { token: game.cloud_token })).toEqual({ did_remove: true });
  const answer = await finding;
  expect(outcomeOf(answer)).toBe('400 MATCHMAKER_LOBBY_STOPPED');
  expect(answer.body.message).toBe(
    'The lobby has stopped: it was ended before its server called POST /matchmaker/lobbies/ready. Find or create another lobby.',
  );
});

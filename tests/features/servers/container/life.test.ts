import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { openExternalDatabase } from '../../../support/database/database.ts';
import { deploy, makeGame, uploadBuild } from '../../../support/game.ts';
import { findProcessesOf } from '../../../support/processes.ts';
import { type Home, makeHome, type Program } from '../../../support/program.ts';
import { packImage, WITHOUT_CONTAINERS } from '../../../support/runtimes/containers.ts';
import { serversOf } from '../../../support/servers.ts';
import { waitFor } from '../../../support/wait.ts';

const TAG = 'game:1';
const SCRIPT = `trap 'echo end; exit 6' TERM
echo "$PORT_page $SERVICE_API_ENDPOINT"
while :; do echo "$n hello" | nc -l -p 80; done &
n=0; while :; do n=$((n+1)); echo $n; sleep 0.02; done`;

describe.skipIf(WITHOUT_CONTAINERS !== undefined)('an image as a Rivet-era client uploads it, without a kind,', () => {
  const opened = new AsyncDisposableStack();
  let home: Home;
  let program: Program;
  beforeAll(async () => {
    const { url } = opened.use(await openExternalDatabase());
    home = opened.use(await makeHome({ MUSTER_DEMO: 'off', DATABASE_URL: url }));
    program = await home.start();
  }, 300_000);
  afterAll(async () => {
    // Ends the servers as well.
    await program.stop('SIGINT');
    await opened.disposeAsync();
  }, 300_000);

  test('runs on the port that it asked for, through kills of the service, and ends with its own code', async () => {
    const game = await makeGame(program.api, program.administrator_token);
    const content = await packImage(SCRIPT, TAG);
    const build = await uploadBuild(program.api, game, { image_tag: TAG, path: 'image.tar', content });
    let servers = serversOf(program, game);
    const network = { ports: { page: { protocol: 'tcp', internal_port: 80 } } };
    const made = await servers.create(await servers.bodyOf(build, { network }));
    const { id } = made.body.server;
    const started = await servers.waitForStart(id);
    const { internal_port, public_port } = started.network.ports.page;
    expect(internal_port).toBe(80);
    expect(public_port).not.toBe(80);
    expect((await servers.waitForLines(id, 3)).slice(0, 3)).toEqual([`80 ${home.url}`, '1', '2']);
    expect(await servers.linesOf(id, 'std_err')).toEqual([]);
    const processes = findProcessesOf(id);
    for (let kill = 0; kill < 2; kill += 1) {
      await waitFor(() => isAnswering(public_port), 'the server to answer');
      await program.stop('SIGKILL');
      await waitFor(() => isAnswering(public_port), 'the server to answer without the service');
      program = await home.start();
    }
    expect(findProcessesOf(id)).toEqual(processes);
    servers = serversOf(program, game);
    await servers.destroy(id);
    await waitFor(async () => (await servers.linesOf(id)).at(-1) === 'end', 'its last line');
    const lines = (await servers.linesOf(id))
      .slice(0, -1)
      .filter((line) => !line.includes(' '))
      .map(Number);
    expect(lines).toEqual(lines.map((_, index) => (lines[0] ?? 0) + index));
    await waitFor(() => findProcessesOf(id).length === 0, 'the server to be gone');
    expect((await servers.linesOf(id, 'std_err')).filter((line) => !line.startsWith('[muster]'))).toEqual([]);
    expect(await isAnswering(public_port)).toBe(false);
  }, 300_000);

  test('is the room of a lobby: it calls ready, and players reach the port of its configuration', async () => {
    const { api } = program;
    const game = await makeGame(api, program.administrator_token);
    const content = await packImage(ROOM, TAG);
    const build = await uploadBuild(api, game, { image_tag: TAG, path: 'image.tar', content });
    const docker = { image_id: build, ports: { page: { port: 80, protocol: 'tcp' } } };
    const game_modes = { default: { max_players: 4, regions: { local: { tier: 'basic-1d8' } } } };
    await deploy(api, game, { game_modes, docker });
    const { status, body } = await api.post('/matchmaker/lobbies/find', game.public_token, { game_modes: ['default'] });
    expect([status, body.code]).toEqual([200, undefined]);
    const [, port] = body.ports.page.host.split(':');
    await waitFor(() => isAnswering(Number(port)), 'the room to answer');
  }, 300_000);
});

/** Calls ready, and answers players at port 80. */
const ROOM = `
address=\${SERVICE_API_ENDPOINT#http://}
printf 'POST /matchmaker/lobbies/ready HTTP/1.0\\r\\nhost: %s\\r\\nauthorization: Bearer %s\\r\\ncontent-length: 2\\r\\ncontent-type: application/json\\r\\n\\r\\n{}' \
  "$address" "$SERVICE_TOKEN" | nc "\${address%:*}" "\${address#*:}"
while :; do echo hello | nc -l -p 80; done`;

async function isAnswering(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  try {
    await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: { data: (_, data) => resolve(data.includes('hello')), close: () => resolve(false) },
    });
    return await promise;
  } catch {
    return false;
  }
}

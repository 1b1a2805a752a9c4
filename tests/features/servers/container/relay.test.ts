import { expect, test } from 'bun:test';
import { openExternalDatabase } from '../../../support/database/database.ts';
import { makeGame, uploadBuild } from '../../../support/game.ts';
import { makeHome } from '../../../support/program.ts';
import { certifyLocalhost, openTlsPlayer } from '../../../support/relayed.ts';
import { packImage, WITHOUT_CONTAINERS } from '../../../support/runtimes/containers.ts';
import { serversOf } from '../../../support/servers.ts';
import { waitFor } from '../../../support/wait.ts';

const TAG = 'game:1';
const SCRIPT = `echo up; while :; do echo "hello" | nc -l -p 80; done`;

test.skipIf(WITHOUT_CONTAINERS !== undefined)(
  'relays: a tcp_tls port of a container leads to its internal_port',
  async () => {
    const { certificate, settings } = await certifyLocalhost();
    await using database = await openExternalDatabase();
    await using home = await makeHome({ ...settings, MUSTER_DEMO: 'off', DATABASE_URL: database.url });
    const program = await home.start();
    const game = await makeGame(program.api, program.administrator_token);
    const content = await packImage(SCRIPT, TAG);
    const build = await uploadBuild(program.api, game, { image_tag: TAG, path: 'image.tar', content });
    const servers = serversOf(program, game);
    const network = { ports: { page: { protocol: 'tcp_tls', internal_port: 80 } } };
    const made = await servers.create(await servers.bodyOf(build, { network }));
    const { id } = made.body.server;
    await servers.waitForLines(id, 1);
    const {
      public_hostname: hostname,
      public_port: port,
      internal_port,
    } = (await servers.waitForStart(id)).network.ports.page;
    expect([hostname, internal_port]).toEqual(['localhost', 80]);
    /** What the server sends to a player, who leaves then. */
    const greet = async (): Promise<string> => {
      for await (const bytes of await openTlsPlayer({ hostname, port }, certificate)) return String(bytes);
      return '';
    };
    // The server listens soon after its first line, and again soon after each player. Until then, players are cut off.
    await waitFor(async () => (await greet().catch(() => '')) === 'hello\n', 'the greeting');
    await program.stop('SIGINT');
  },
  300_000,
);

import { afterAll, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { openExternalDatabase } from '../support/database/database.ts';
import { makeGame, uploadBuild } from '../support/game.ts';
import { makeHome } from '../support/program.ts';
import { WITHOUT_CONTAINERS } from '../support/runtimes/containers.ts';
import { dockerLayout } from '../support/runtimes/images.ts';
import { serversOf } from '../support/servers.ts';
import { packTar, type TarEntry } from '../support/tar.ts';
import { waitFor } from '../support/wait.ts';

/** GNU Go, as Debian packs it: a game server that was not written for Muster. It speaks the Go Text Protocol over TCP. */
const GNU_GO = '/usr/games/gnugo';
const PORT = 8_800;
const TAG = 'gnugo:3.8';
const ANSWER_TIMEOUT_MS = 30_000;

const has_gnu_go = await Bun.file(GNU_GO).exists();
const missing = WITHOUT_CONTAINERS ?? (has_gnu_go ? undefined : 'install gnugo');

afterAll(() => {
  if (missing !== undefined) console.log(`Not tried, because ${missing}: a foreign program in an image.`);
});

test.skipIf(missing !== undefined)(
  'image: a program of Debian, packed as an image, is hosted and played',
  async () => {
    await using database = await openExternalDatabase();
    await using home = await makeHome({ MUSTER_DEMO: 'off', DATABASE_URL: database.url });
    const program = await home.start();
    const game = await makeGame(program.api, program.administrator_token);
    const content = await packGnuGo();
    const build = await uploadBuild(program.api, game, { image_tag: TAG, path: 'image.tar', content });
    const servers = serversOf(program, game);
    const network = { ports: { go: { protocol: 'tcp', internal_port: PORT } } };
    const runtime = { arguments: ['--mode', 'gtp', '--gtp-listen', `${PORT}`] };
    // Its search for a move takes half a second of a whole processor.
    const resources = { cpu: 1_000, memory: 128 };
    const made = await servers.create(await servers.bodyOf(build, { network, runtime, resources }));
    expect(made.status).toBe(200);
    const { id } = made.body.server;
    const { public_hostname, public_port } = (await servers.waitForStart(id)).network.ports.go;

    const commands = ['boardsize 9', 'play black E5', 'genmove white', 'list_stones black'];
    // Until the program listens, connections are closed without an answer.
    const answers = await waitFor(
      () => play(public_hostname, public_port, commands).catch(() => undefined),
      'the program to answer',
    );
    expect(answers).toEqual(['=', '=', expect.stringMatching(/^= [A-HJ][1-9]$/), '= E5']);
    await servers.destroy(id);
    await servers.waitForEnd(id);
  },
  300_000,
);

/** Packs the program and the libraries that it needs as `docker save` does. */
async function packGnuGo(): Promise<Buffer> {
  const libraries = [...(await Bun.$`ldd ${GNU_GO}`.text()).matchAll(/\/\S+/g)].map(([path]) => path);
  const entries = [GNU_GO, ...libraries].map(
    async (path): Promise<TarEntry> => ({ name: path.slice(1), content: await Bun.file(path).bytes(), mode: 0o755 }),
  );
  const config = { Entrypoint: [GNU_GO], User: '1000' };
  return await packTar(await dockerLayout({ layers: [await Promise.all(entries)], tags: [TAG], config }));
}

/** Sends commands and returns the answer to each; an empty line ends an answer. Fails if the connection breaks. */
async function play(host: string, port: number, commands: string[]): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  let text = '';
  const socket = connect({ host, port }, () => socket.write(`${commands.join('\n')}\n`));
  socket.on('data', (bytes) => {
    text += bytes.toString();
    const answers = text.split('\n\n').slice(0, -1);
    if (answers.length === commands.length) resolve(answers.map((answer) => answer.trim()));
  });
  socket.on('close', () => reject(new Error('the program ended the connection')));
  socket.on('error', reject);
  socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new Error('the program does not answer')));
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}

import { beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { makeGame, type TestGame, uploadBuild } from '../../support/game.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { shareService } from '../../support/suite.ts';
import { packTar } from '../../support/tar.ts';

const muster = shareService();
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
});

/** The script of docs/servers.md. */
const AGAIN = /```sh\n(# again\.sh[\s\S]*?)```/.exec(readFileSync('docs/servers.md', 'utf8'))?.[1] ?? '';

/** Runs a program by the script as a server, and returns its id. */
async function runAgain(program: string): Promise<string> {
  const content = await packTar([
    { name: 'again.sh', content: AGAIN },
    { name: 'server', content: `#!/bin/sh\n${program}`, mode: 0o755 },
  ]);
  const command = ['/bin/sh', 'again.sh', './server'];
  const build = await uploadBuild(muster.api, game, { kind: 'archive', path: 'server.tar', content, command });
  return (await servers.create(await servers.bodyOf(build))).body.server.id;
}

describe('servers: the script that starts a program again', () => {
  test('starts it after a crash, as the same server with its files, and ends with it', async () => {
    const server_id = await runAgain('echo run; [ -e $HOME/crashed ] && exit 0; touch $HOME/crashed; exit 4');
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_code: 0, exit_signal: null, failure: null });
    expect(await servers.linesOf(server_id)).toEqual(['run', 'run']);
    expect(await servers.linesOf(server_id, 'std_err')).toContain('crashed with 4, starts again in 1 s');
  });

  test('passes on the request to end, and does not start the program again', async () => {
    const server_id = await runAgain(`trap 'echo saved; exit 5' TERM; echo up; while :; do sleep 0.01; done`);
    await servers.waitForLines(server_id, 1);
    await servers.destroy(server_id);
    await waitForEndEvent(muster, server_id);
    expect(await servers.linesOf(server_id)).toEqual(['up', 'saved']);
  });
});

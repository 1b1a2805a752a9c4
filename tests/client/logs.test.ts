import { beforeAll, describe, expect, test } from 'bun:test';
import { shareClientProxy } from '../support/client.ts';
import { makeGame, type TestGame } from '../support/game.ts';
import { serversOf } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const PIECES = 8;
const PIECE_LINES = 100;

const muster = shareService({ MUSTER_WATCH_HOLD_MS: '1000' });
const proxied = shareClientProxy(muster);
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

const open = () => proxied.open({ token: game.cloud_token });

/** Returns the number of WebSockets so far. */
const countSockets = () =>
  muster.events.filter((event) => event.event === 'request_served' && event.route === '/watch').length;

describe('client: a server log comes in order, without repeated or missing lines', () => {
  /** Writes numbers: for each file that appears, as many as a piece has. */
  const COUNTING = `cd "$HOME"; piece=0; number=0
    while :; do
      while [ ! -e go.$piece ]; do sleep 0.01; done
      piece=$((piece + 1))
      while [ $number -lt $((piece * ${PIECE_LINES})) ]; do echo $number; number=$((number + 1)); done
    done`;
  const cutAndMend = async (piece: number, write: () => Promise<void>) => {
    // While the client is disconnected, or also while it reconnects.
    const writing = piece % 2 === 0 ? undefined : write();
    await proxied.proxy.cut();
    await (writing ?? write());
    await proxied.proxy.heal();
  };
  /** Runs a server that writes a piece when the test says so. */
  async function runCounting() {
    const servers = serversOf(muster, game);
    const server_id = await servers.run(COUNTING);
    const findIndex = async () => (await servers.log(server_id)).body.watch.index;
    return {
      logs: `${servers.path}/${server_id}/logs?stream=std_out`,
      findIndex,
      async write(piece: number) {
        const index = await findIndex();
        await Bun.write(`${muster.config.data_directory}/servers/${server_id}/work/go.${piece}`, '');
        // The answer comes once the new lines are in the log.
        await servers.log(server_id, 'std_out', index);
      },
      end: () => servers.destroy(server_id, '?override_kill_timeout=0'),
    };
  }
  const numbersOf = (pieces: number) => Array.from({ length: pieces * PIECE_LINES }, (_line, number) => String(number));
  type Disturbance = typeof cutAndMend;
  const DISTURBANCES: [string, Disturbance, number | undefined][] = [
    ['over sockets that break', cutAndMend, undefined],
    ['by polls that break', cutAndMend, 426],
    [
      'over sockets and by polls in turn',
      async (piece, write) => {
        const are_refused = piece % 2 === 0;
        proxied.proxy.refuseWebSockets(are_refused ? 426 : undefined);
        const sockets = countSockets();
        if (are_refused) return await cutAndMend(piece, write);
        // Lines that were polled for are still on their way when a socket takes over.
        await waitFor(() => countSockets() > sockets, 'a socket');
        await write();
      },
      undefined,
    ],
  ];
  test.each(DISTURBANCES)('%s', async (_, disturb, refused_status) => {
    const { logs, findIndex, write, end } = await runCounting();
    proxied.proxy.refuseWebSockets(refused_status);
    const client = open();
    const read: string[] = [];
    /** The lines of a later watcher, which starts at an index. */
    const read_late: string[] = [];
    client.watch(logs, addTo(read), { watch_index: await findIndex() });
    for (let piece = 0; piece < PIECES; piece += 1) {
      await disturb(piece, () => write(piece));
      await waitFor(() => read.length >= (piece + 1) * PIECE_LINES, `piece ${piece}`);
      if (piece !== 3) continue;
      client.watch(logs, addTo(read_late), { watch_index: await findIndex() });
    }
    const all = numbersOf(PIECES);
    expect(read).toEqual(all);
    expect(read_late).toEqual(all.slice(4 * PIECE_LINES));
    await end();
  });

  test.each([
    ['a socket', undefined],
    ['polls', 502],
  ])('over %s, also with an index in the path, and before a fragment', async (_, refused_status) => {
    const { logs, findIndex, write, end } = await runCounting();
    const index = await findIndex();
    await write(0);
    proxied.proxy.refuseWebSockets(refused_status);
    const client = open();
    const all: string[] = [];
    const after: string[] = [];
    client.watch(`${logs}#end`, addTo(all));
    await waitFor(() => all.length >= PIECE_LINES, 'the first lines');
    client.watch(`${logs}&watch_index=${index}#end`, addTo(after));
    for (let piece = 1; piece < 4; piece += 1) {
      await write(piece);
      await waitFor(() => Math.min(all.length, after.length) >= (piece + 1) * PIECE_LINES, `piece ${piece}`);
    }
    expect(all).toEqual(numbersOf(4));
    expect(after).toEqual(numbersOf(4));
    await end();
  });
});

const addTo = (read: string[]) => (body: Logs) => void read.push(...body.lines.map(atob));

interface Logs {
  lines: string[];
  watch: { index: string };
}

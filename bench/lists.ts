// Measures what it costs to watch a large list: `bun bench/lists.ts`. A namespace has 5,000 lobbies; one client watches a
// window of 50 as changes, or all of them as bodies (analytics/matchmaker/live). At 2 changes a second, each is sent alone.
// At 50, a frame has several, and a whole body has more of them than changed rows have, because it takes longer.
import { openSocket } from '../tests/support/watch/socket.ts';
import { changeLobbies, type ManyLobbies, openManyLobbies } from './many-lobbies.ts';
import { startMeter } from './meter.ts';
import { printTable } from './report.ts';
import { runBench } from './run.ts';

const LOBBIES = 5_000;
const RATES = [
  { per_second: 2, seconds: 30 },
  { per_second: 50, seconds: 20 },
];
/** Compiles the code before it is measured. */
const WARM_UP = { per_second: 50, seconds: 3 };

await runBench(async (opened) => {
  const many = await openManyLobbies(opened, LOBBIES);
  const namespace = `/cloud/games/${many.game.game_id}/namespaces/${many.game.namespace_id}`;
  const paths = {
    rows: `${namespace}/matchmaker/lobbies?order=oldest`,
    bodies: `${namespace}/analytics/matchmaker/live`,
  };
  for (const path of Object.values(paths)) await measure(many, path, WARM_UP);
  for (const rate of RATES) {
    const nothing = await measure(many, undefined, rate);
    const rows = await measure(many, paths.rows, rate);
    const bodies = await measure(many, paths.bodies, rate);
    const added = ({ seconds }: Measured) => Math.max(0, seconds - nothing.seconds);
    const share = (costOf: (measured: Measured) => number) => `${((100 * costOf(rows)) / costOf(bodies)).toFixed(1)} %`;
    const cellsOf = (name: string, { seconds, frames, bytes, changes }: Measured) => [
      name,
      `${((100 * seconds) / rate.seconds).toFixed(1)} %`,
      `${frames} of ${changes}`,
      `${(bytes / 1e6).toFixed(2)} MB`,
    ];
    printTable(`${LOBBIES} lobbies, ${rate.per_second} changes/s for ${rate.seconds} s, one watcher`, [
      ['watched as', 'of a core', 'frames of changes', 'sent'],
      cellsOf('nothing', nothing),
      cellsOf('changed rows', rows),
      cellsOf('bodies', bodies),
    ]);
    const frame_cost = share((measured) => added(measured) / measured.frames);
    console.log(`Watching changed rows costs ${share(added)} of watching bodies; a frame ${frame_cost} of a body.`);
  }
});

interface Measured {
  /** Processor time of the service and its database. */
  seconds: number;
  /** What the watcher got. */
  frames: number;
  bytes: number;
  changes: number;
}

async function measure(
  many: ManyLobbies,
  path: string | undefined,
  rate: { per_second: number; seconds: number },
): Promise<Measured> {
  const { program, database_pid } = many;
  using socket = openSocket(program.url, { token: program.administrator_token });
  if (path !== undefined) await socket.body(await socket.subscribe('list', path));
  const frames_before = socket.frames.length;
  let bytes = 0;
  socket.socket.addEventListener('message', ({ data }) => {
    bytes += String(data).length;
  });
  const stopMeter = startMeter({ server_pid: program.pid, database_pid });
  const changes = await changeLobbies(many, rate);
  const { thread, rest, database } = stopMeter();
  return { seconds: thread + rest + database, frames: socket.frames.length - frames_before, bytes, changes };
}

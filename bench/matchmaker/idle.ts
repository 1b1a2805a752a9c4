import { makeRoomGame, READY_SOURCE } from '../../tests/support/lobbies/room.ts';
import { postgresOf } from '../../tests/support/processes.ts';
import { commandOf, makeHome } from '../../tests/support/program.ts';
import { startMeter } from '../meter.ts';
import { type Goal, printTable } from '../report.ts';

/** Time until the service is idle: after it is ready, code is still compiled and memory given back. */
const REST_MS = 60_000;
const MEASURED_S = 20;
const MS_A_SECOND_MAX = 8;

/** A service that nothing uses. */
export interface IdleService {
  /**
   * Waits until the service has been idle for a minute, then measures its processor time and that of its PostgreSQL. The
   * goal is for a service without game servers.
   */
  measure(): Promise<Goal>;
}

/** Starts the service from source with all defaults; `has_lobby`: with one warm lobby, which has a game server. */
export async function startIdleService(
  opened: AsyncDisposableStack,
  { has_lobby }: { has_lobby: boolean },
): Promise<IdleService> {
  const home = opened.use(await makeHome({ MUSTER_LIMITS_SCALE: '1', MUSTER_DATABASE_POOL: '10' }));
  const program = await home.start({ command: commandOf('source') });
  if (has_lobby) await makeRoomGame(program, { source: READY_SOURCE, mode: { idle_lobbies: { min: 1, max: 1 } } });
  const started = performance.now();
  const what = has_lobby ? 'Idle with one lobby' : 'Idle';
  return {
    async measure() {
      await Bun.sleep(Math.max(0, started + REST_MS - performance.now()));
      const readMeter = startMeter({ server_pid: program.pid, database_pid: postgresOf(home.data_directory) });
      await Bun.sleep(MEASURED_S * 1_000);
      const { thread, rest, database } = readMeter();
      const toMs = (seconds: number) => (seconds * 1_000) / MEASURED_S;
      const each = [thread, rest, database].map(toMs);
      const sum = toMs(thread + rest + database);
      const rested_s = ((performance.now() - started) / 1_000).toFixed(0);
      printTable(`${what}, ${rested_s} s after its start: milliseconds of processor time a second`, [
        ['thread', 'rest', 'PostgreSQL', 'in all'],
        [...each, sum].map((milliseconds) => milliseconds.toFixed(1)),
      ]);
      return {
        what: 'idle processor time of service + PostgreSQL',
        limit: `<= ${MS_A_SECOND_MAX} ms/s`,
        figure: `${sum.toFixed(1)} ms/s`,
        is_met: sum <= MS_A_SECOND_MAX,
      };
    },
  };
}

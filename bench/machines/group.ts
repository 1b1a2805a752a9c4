import { commandOf, makeHome, type Program } from '../../tests/support/program.ts';
import { makeNamespace, openArena, type Played, SETTINGS } from '../matchmaker/arena.ts';
import { settingsOn } from '../second-process.ts';

/** A paused process must not be declared lost. */
const NEVER_LOST = { MUSTER_MACHINE_LOST_MS: '3600000' };

/** Processes of the service on one embedded PostgreSQL, which the first one runs. */
export interface Group {
  processes: Program[];
  /** One for each process. Any process serves each. */
  namespaces: Played[];
  database_pid: number;
}

export async function openGroup(opened: AsyncDisposableStack, count: number): Promise<Group> {
  const arena = await openArena(opened, { settings: NEVER_LOST });
  const namespaces: Played[] = [arena];
  // Before other processes run, which have no builds and could take their servers.
  while (namespaces.length < count) namespaces.push(await makeNamespace(arena.program, arena.database));
  const processes = [arena.program];
  while (processes.length < count) {
    const home = opened.use(await makeHome({ ...SETTINGS, ...NEVER_LOST, ...settingsOn(arena.connection) }));
    processes.push(await home.start({ command: commandOf('source') }));
  }
  return { processes, namespaces, database_pid: arena.database_pid };
}

import { EXIT, Failure } from '../../terminal/failure.ts';
import { ago, counted, shortId } from '../../terminal/terminal.ts';
import { LONG_ATTEMPTS_MAX } from '../api-caller.ts';
import { readDuration, readWait } from '../durations.ts';
import { Session, type SharedOptions } from '../session.ts';

interface Machine {
  machine_id: string;
  host: string;
  state: string;
  since_ts: string;
  servers: number;
  lobbies: number;
  players: number;
  drain?: { since_ts: string; deadline_ts?: string; is_complete: boolean };
}

interface MachinesOptions extends SharedOptions {
  drain?: string | true;
  undo?: boolean;
  wait?: string | true;
}

const CHECK_EVERY_MS = 1_000;

/** Lists the machines of a service, or shows one, drains it, or ends its drain. For administrators. */
export async function machines(given: string | undefined, options: MachinesOptions): Promise<void> {
  const { drain, undo = false, wait } = options;
  const deadline_ms = typeof drain === 'string' ? readDuration(drain, '--drain') : undefined;
  const wait_ms = readWait(wait);
  if (given === undefined && (drain !== undefined || undo || wait !== undefined)) {
    throw new Failure('Say which machine: muster machines ID --drain', EXIT.wrong_use);
  }
  const session = await Session.open(options);
  const { machines: all } = await session.api.get<{ machines: Machine[] }>('/cloud/machines');
  if (given === undefined) return showAll(session, all);
  const { machine_id } = find(session, all, given);
  const path = `/cloud/machines/${machine_id}`;
  if (undo) await session.api.call('DELETE', `${path}/drain`);
  else if (drain !== undefined) await session.api.call('PUT', `${path}/drain`, { body: { deadline_ms } });
  const read = async (attempts_max?: number) =>
    (await session.api.get<{ machine: Machine }>(path, { attempts_max })).machine;
  const machine = wait_ms === undefined ? await read() : await waitUntilEmpty(session, read, wait_ms);
  session.show({ machine }, ({ record, say }) => {
    record({ ...machine, drain: undefined });
    say(describeDrain(machine));
  });
}

function showAll(session: Session, all: Machine[]): void {
  session.show({ machines: all }, (output) =>
    output.table(
      ['MACHINE', 'HOST', 'STATE', 'SINCE', 'SERVERS', 'LOBBIES', 'PLAYERS', 'DRAIN'],
      all.map(({ machine_id, host, state, since_ts, servers, lobbies, players, drain }) => [
        shortId(machine_id),
        host,
        state,
        ago(since_ts),
        String(servers),
        String(lobbies),
        String(players),
        drain === undefined ? '' : drain.is_complete ? 'complete' : 'under way',
      ]),
    ),
  );
}

function find(session: Session, all: Machine[], given: string): Machine {
  const text = given.toLowerCase();
  const found = all.filter(
    ({ machine_id, host }) => machine_id.startsWith(text) || machine_id.endsWith(text) || host === given,
  );
  const [first, ...others] = found;
  if (!first) {
    const advice = `List them: ${session.commandAt('machines')}`;
    throw new Failure(`The service has no machine "${given}". ${advice}`, EXIT.not_found);
  }
  if (others.length > 0) {
    throw new Failure(`"${given}" fits ${found.length} machines: write more of the id.`, EXIT.wrong_use);
  }
  return first;
}

/** Waits until no server is left on a machine. Throws Failure after a time. */
async function waitUntilEmpty(
  session: Session,
  read: (attempts_max: number) => Promise<Machine>,
  wait_ms: number,
): Promise<Machine> {
  let before: string | undefined;
  for (const started = performance.now(); ; ) {
    const machine = await read(LONG_ATTEMPTS_MAX);
    if (machine.servers === 0) return machine;
    const words = describeDrain(machine);
    if (performance.now() - started >= wait_ms)
      throw new Failure(`${words} The time of --wait is over.`, EXIT.timed_out);
    if (words !== before) session.output.say(words);
    before = words;
    await Bun.sleep(CHECK_EVERY_MS);
  }
}

function describeDrain({ drain, servers, players }: Machine): string {
  if (drain === undefined) return 'It is not being drained.';
  const left = `${counted(servers, 'server', 'servers')} with ${counted(players, 'player', 'players')}`;
  return drain.is_complete ? 'It is drained: no server is left.' : `It is being drained; left: ${left}.`;
}

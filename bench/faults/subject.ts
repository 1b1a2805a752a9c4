import type { TestGame } from '../../tests/support/game.ts';
import { makeRoomGame, READY_SOURCE } from '../../tests/support/lobbies/room.ts';
import { commandOf, type Home, makeHome, type Program } from '../../tests/support/program.ts';
import { requestOf } from './connections.ts';
import { type Probe, type ProbeLine, startProbe } from './probe.ts';

const LIVE_REQUESTS_PER_SECOND = 50;
const FINDS_PER_SECOND = 20;
const SEATS = 256;

/** The executable as a process, with a game that the fault must not touch and the probe that uses both. */
export interface Subject extends AsyncDisposable {
  home: Home;
  program: Program;
  /** The command line that started it. */
  command: string[];
  port: number;
  bystander: TestGame;
  probe: Probe;
  lines: ProbeLine[];
}

export interface SubjectOptions {
  /** Settings by their names in the environment. */
  settings?: Record<string, string>;
  command?: string[];
  /** The parent of its data directory, by default that of temporary files. */
  parent?: string;
  /** Lobbies of the bystander that wait for players, so that a find need not wait for a start. */
  idle_lobbies?: number;
  /** Whether the probe opens a connection for each request, like new clients. */
  is_fresh?: boolean;
}

/** Starts the service with a data directory and a port of its own. */
export async function startSubject({
  settings = {},
  command = commandOf('executable'),
  parent,
  idle_lobbies = 1,
}: SubjectOptions): Promise<Subject> {
  await using opened = new AsyncDisposableStack();
  const home = opened.use(await makeHome({ MUSTER_DEMO: 'off', MUSTER_DATABASE_POOL: '10', ...settings }, { parent }));
  const program = await home.start({ command });
  const mode = { idle_lobbies: { min: idle_lobbies, max: idle_lobbies } };
  const bystander = await makeRoomGame(program, { source: READY_SOURCE, max_players: SEATS, mode });
  const host = new URL(program.url).host;
  const { public_token } = bystander;
  const probe = opened.use(await startProbe());
  const everything = opened.move();
  return {
    home,
    program,
    command,
    port: Number(new URL(program.url).port),
    bystander,
    probe,
    lines: [
      { name: 'live', request: requestOf('GET', '/health/live', { host }), per_second: LIVE_REQUESTS_PER_SECOND },
      { name: 'find', request: findRequest(host, public_token), per_second: FINDS_PER_SECOND },
    ],
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

function findRequest(host: string, token: string): string {
  const headers = { host, authorization: `Bearer ${token}` };
  return requestOf('POST', '/matchmaker/lobbies/find', headers, { game_modes: ['default'] });
}

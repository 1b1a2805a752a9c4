import { exportJWK, generateKeyPair } from 'jose';
import { LobbyIndex } from '../../src/features/lobbies/matchmaking/lobby-index.ts';
import { planSeats } from '../../src/features/lobbies/matchmaking/planner.ts';
import type { SeatRequest } from '../../src/features/lobbies/matchmaking/seat-requests.ts';
import { takeSeats } from '../../src/features/lobbies/matchmaking/seats-store.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createTokens } from '../../src/platform/tokens/tokens.ts';
import { type Goal, middleOf, printTable, show } from '../report.ts';
import type { Arena } from './arena.ts';
import type { Called, Callers, Calls } from './calls.ts';
import { assertAnswered, atLeast, atMost, callOf, targetOf } from './finds.ts';
import type { Peer } from './peers.ts';
import type { Plan } from './plan.ts';

const CLIENTS = 64;
const CONNECTED_PER_SECOND_MIN = 20_000;
const CROWD = 1_000_000;
/** All come from one place, and may. */
const CLIENT = { name: '127.0.0.1', players_max: 1_000_000_000 };

interface OthersOptions {
  arena: Arena;
  elysia: Peer;
  callers: Callers;
  plan: Plan;
}

/** Everything about seats that is not a find by many. */
export async function measureOthers(options: OthersOptions): Promise<Goal[]> {
  const goals = [
    ...(await measureJoins(options)),
    ...(await measureLobbies(options)),
    ...(await measureCreates(options)),
  ];
  await measureStatements(options);
  return [...goals, ...(await measureParts(options))];
}

/** Joins of known lobbies, and players who arrive, beside the empty route. */
async function measureJoins({ arena, elysia, callers, plan }: OthersOptions): Promise<Goal[]> {
  const { rounds, seconds, lobbies } = plan;
  const empty: number[] = [];
  const joins: number[] = [];
  const arrivals: number[] = [];
  const joining = {
    path: '/matchmaker/lobbies/join',
    headers: arena.headers,
    bodies: arena.lobby_ids.map((lobby_id) => JSON.stringify({ lobby_id })),
  };
  for (let round = -1; round < rounds; round += 1) {
    const one = await call(elysia.port, callers, { path: elysia.path, headers: '', bodies: [elysia.body], seconds });
    await arena.reset({ lobbies });
    joining.bodies = arena.lobby_ids.map((lobby_id) => JSON.stringify({ lobby_id }));
    const two = await call(arena.port, callers, { ...joining, seconds });
    const three = await callArriving({ arena, elysia, callers, plan });
    // The first round warms up.
    if (round < 0) continue;
    for (const [all, called] of [
      [empty, one],
      [joins, two],
      [arrivals, three],
    ] as const) {
      all.push(called.answered / called.seconds);
    }
  }
  const [limit, joined, arrived] = [empty, joins, arrivals].map(middleOf) as [number, number, number];
  printTable(`Joins and arrivals, ${CLIENTS} clients`, [
    ['', 'a second', 'of Elysia'],
    [elysia.name, show.perSecond(limit), show.ratio(1)],
    ['joins', show.perSecond(joined), show.ratio(joined / limit)],
    ['players connected', show.perSecond(arrived), show.ratio(arrived / limit)],
  ]);
  return [
    atLeast('joins of the empty route, 64 clients', 0.4, joined / limit),
    {
      what: 'players connected, a second',
      limit: `>= ${show.perSecond(CONNECTED_PER_SECOND_MIN)}`,
      figure: show.perSecond(arrived),
      is_met: arrived >= CONNECTED_PER_SECOND_MIN,
    },
  ];
}

/** Players of one lobby show their tokens to its server, each once. */
async function callArriving({ arena, callers, plan }: OthersOptions): Promise<Called> {
  const finding = targetOf(arena, () => arena.reset({ lobbies: 1, seats: CROWD }));
  const found = await callOf(finding, callers, { clients: CLIENTS, seconds: plan.seconds, keeps: true });
  const bodies = (found.kept ?? []).map((answer) => JSON.stringify({ player_token: JSON.parse(answer).player.token }));
  const arriving = { path: '/matchmaker/players/connected', headers: arena.lobby_headers, bodies };
  return await call(arena.port, callers, { ...arriving, seconds: 60, count_max: bodies.length });
}

/** One client alone, where there are few lobbies and where there are many. */
async function measureLobbies({ arena, callers, plan }: OthersOptions): Promise<Goal[]> {
  const times = new Map<number, number[]>([
    [plan.few, []],
    [plan.many, []],
  ]);
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const [lobbies, all] of times) {
      const target = targetOf(arena, () => arena.reset({ lobbies }));
      await callOf(target, callers, { clients: 1, seconds: 1 });
      const { p50 } = await callOf({ ...target, prepare: async () => {} }, callers, {
        clients: 1,
        seconds: plan.seconds,
      });
      all.push(p50);
    }
  }
  const [few = Number.NaN, many = Number.NaN] = [...times.values()].map(middleOf);
  const names = [...times.keys()].map((count) => `${show.perSecond(count)} open lobbies`);
  printTable('One client alone', [
    ['', 'p50 ms'],
    [names[0] ?? '', few.toFixed(2)],
    [names[1] ?? '', many.toFixed(2)],
  ]);
  const ratio = many / few;
  return [
    {
      what: `a find among ${names[1]}, of one among ${names[0]}`,
      limit: '<= 2.00×',
      figure: show.ratio(ratio),
      is_met: ratio <= 2,
    },
  ];
}

/** Lobbies that players make: each is a process that has to start and to say that it is ready. */
async function measureCreates({ arena, callers, plan }: OthersOptions): Promise<Goal[]> {
  await arena.reset({ lobbies: 1 });
  const creating = {
    path: '/matchmaker/lobbies/create',
    headers: arena.headers,
    bodies: [JSON.stringify({ game_mode: 'default' })],
  };
  await callers.open(arena.port, 4);
  const made = await callers.call({ ...creating, seconds: 60, count_max: plan.creates });
  assertAnswered(made);
  const by_hand = await startByHand(arena, plan.creates);
  const [mine, theirs] = [made.seconds / made.answered, by_hand / plan.creates];
  printTable(`Lobbies of players' own, 4 at a time, until they are ready`, [
    ['', 'ms each', 'of by hand'],
    ['the same process started by hand', show.milliseconds(theirs * 1_000), show.ratio(1)],
    ['create', show.milliseconds(mine * 1_000), show.ratio(mine / theirs)],
  ]);
  return [];
}

/** Seconds until so many rooms have called their API, four at a time. */
async function startByHand({ room_source }: Arena, count: number): Promise<number> {
  const waiting = new Map<string, () => void>();
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      waiting.get(request.headers.get('authorization') ?? '')?.();
      return new Response('{}');
    },
  });
  const rooms: Bun.Subprocess[] = [];
  let started = 0;
  const startNext = async () => {
    while (started < count) {
      started += 1;
      const ready = Promise.withResolvers<void>();
      const token = `room-${started}`;
      waiting.set(`Bearer ${token}`, ready.resolve);
      const env = { SERVICE_API_ENDPOINT: `http://127.0.0.1:${server.port}`, SERVICE_TOKEN: token };
      rooms.push(Bun.spawn([process.execPath, '-e', room_source], { env, stdout: 'ignore', stderr: 'ignore' }));
      await ready.promise;
    }
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: 4 }, startNext));
  const seconds = (performance.now() - from) / 1_000;
  for (const room of rooms) room.kill('SIGKILL');
  await server.stop(true);
  return seconds;
}

/** What PostgreSQL could give: the statement of a round, one after the other, without anybody who asks. */
async function measureStatements({ arena, plan }: OthersOptions): Promise<void> {
  const rows: string[][] = [];
  for (const size of [1, 64, 256]) {
    await arena.reset({ lobbies: plan.lobbies });
    const end = performance.now() + plan.seconds * 1_000;
    const started = performance.now();
    let seats = 0;
    while (performance.now() < end) {
      const now = new Date();
      const lobby_id = arena.lobby_ids[Math.floor(seats / size) % arena.lobby_ids.length] ?? '';
      const proposed = Array.from({ length: size }, (_, index) => ({
        player_id: Bun.randomUUIDv7(),
        lobby_id: arena.lobby_ids[(Math.floor(seats / size) * size + index) % arena.lobby_ids.length] ?? lobby_id,
        namespace_id: arena.namespace_id,
        address: '127.0.0.1',
        client: CLIENT.name,
        players_max: CLIENT.players_max,
        party: index,
        ticket: null,
        kind: 'find' as const,
      }));
      await takeSeats(arena.database.queries, proposed, { now, deadline: new Date(now.getTime() + 3_600_000) });
      seats += size;
    }
    rows.push([`${size} in a round`, show.perSecond((seats / (performance.now() - started)) * 1_000)]);
  }
  printTable('The same statements alone, one after the other', [['', 'seats a second'], ...rows]);
}

/** The parts of a find that take the processor of everybody else: deciding a round, and signing. */
async function measureParts({ arena, plan }: OthersOptions): Promise<Goal[]> {
  const index = new LobbyIndex();
  const open = { version_id: 'v', game_mode: 'default', region: 'local', tags: {}, is_closed: false, publicity: null };
  const maxima = { max_players_normal: 100, max_players_direct: 100, max_players_party: 100 };
  for (let number = 0; number < plan.many; number += 1) {
    index.set({ ...open, ...maxima, lobby_id: `lobby ${number}`, player_count: number % 100 });
  }
  const search = { game_modes: ['default'], regions: ['local'], tags: {}, creates: undefined };
  const request = (): SeatRequest => ({
    kind: 'find',
    ...{
      player_id: Bun.randomUUIDv7(),
      namespace_id: 'n',
      game_id: 'g',
      version_id: 'v',
      address: '127.0.0.1',
      client: CLIENT,
      search,
    },
  });
  const blocked: number[] = [];
  for (let round = 0; round < 100; round += 1) {
    const requests = Array.from({ length: 512 }, request);
    const started = performance.now();
    planSeats(requests, () => index);
    blocked.push(performance.now() - started);
  }
  const signed = await signingCosts();
  printTable('What takes the processor', [
    ['', 'a second', 'µs each'],
    ...signed.map(({ name, each_us }) => [name, show.perSecond(1_000_000 / each_us), each_us.toFixed(1)]),
  ]);
  printTable(`A round of 512 finds among ${show.perSecond(plan.many)} lobbies`, [
    ['', 'p50 ms', 'longest'],
    ['decided in', middleOf(blocked).toFixed(2), Math.max(...blocked).toFixed(2)],
  ]);
  return [
    atMost(
      `the event loop blocked by a round of 512 among ${show.perSecond(plan.many)} lobbies (${arena.name})`,
      10,
      Math.max(...blocked),
    ),
  ];
}

/** Tokens as they are made, by what signs them. */
async function signingCosts(): Promise<{ name: string; each_us: number }[]> {
  const { privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const tokens = await createTokens(await exportJWK(privateKey), systemClock);
  const id = crypto.randomUUID();
  const callers = [
    { name: 'tokens of players (HS256)', caller: { kind: 'player', player_id: id } as const },
    { name: 'tokens of others (EdDSA)', caller: { kind: 'lobby', lobby_id: id } as const },
  ];
  const costs: { name: string; each_us: number }[] = [];
  for (const { name, caller } of callers) {
    const issueMany = async (count: number) => {
      for (let made = 0; made < count; made += CLIENTS) {
        await Promise.all(Array.from({ length: CLIENTS }, () => tokens.issue(caller)));
      }
    };
    await issueMany(CLIENTS * 100);
    const before = process.cpuUsage();
    await issueMany(CLIENTS * 200);
    const { user, system } = process.cpuUsage(before);
    costs.push({ name, each_us: (user + system) / (CLIENTS * 200) });
  }
  return costs;
}

async function call(
  port: number,
  callers: Callers,
  calls: Omit<Calls, 'count_max'> & { count_max?: number },
): Promise<Called> {
  await callers.open(port, CLIENTS);
  const called = await callers.call({ count_max: Number.MAX_SAFE_INTEGER, ...calls });
  assertAnswered(called);
  return called;
}

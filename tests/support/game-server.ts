import type { Answer, Api } from './api.ts';
import { deploy, listServers, makeGame, setLimits, type TestGame, uploadScript } from './game.ts';
import type { TestService } from './service.ts';
import { waitFor } from './wait.ts';

/** A lobby server that returns its environment with its token, so that the test can make its calls. */
const CONTROLLED_SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, SERVICE_LOBBY_ID, PORT_game, READY } = process.env;
Bun.serve({ port: Number(PORT_game), fetch: () => Response.json(process.env) });
console.log('this is ' + SERVICE_LOBBY_ID);
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
if (READY !== 'no') await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
`;

interface ControlledGameOptions {
  game_modes?: Record<string, object>;
  /** Whether the servers call ready themselves. */
  is_ready?: boolean;
  source?: string;
  ports?: object;
  network_mode?: string;
  /** Maximum number of lobbies of prod. */
  lobby_count_max?: number;
  /** Maximum number of players of a client there. */
  max_players?: number;
}

/** Makes a game whose servers the test controls. Its only game mode is "default", unless others are given. */
export async function makeControlledGame(
  { api, administrator_token }: Pick<TestService, 'api' | 'administrator_token'>,
  options: ControlledGameOptions = {},
): Promise<TestGame & { build_id: string; version_id: string; matchmaker: object }> {
  const {
    game_modes = { default: {} },
    is_ready = true,
    source = CONTROLLED_SOURCE,
    lobby_count_max,
    max_players,
  } = options;
  const { ports = { game: { port: 80, protocol: 'http' } }, network_mode = 'bridge' } = options;
  const game = await makeGame(api, administrator_token);
  const build_id = await uploadScript(api, game, source);
  const limits = { ...(lobby_count_max && { lobby_count_max }), ...(max_players && { max_players }) };
  if (Object.keys(limits).length > 0) await setLimits(api, { ...game, token: game.cloud_token }, limits);
  const env = is_ready ? {} : { READY: 'no' };
  const matchmaker = { game_modes, docker: { image_id: build_id, ports, network_mode, env } };
  return { ...game, build_id, matchmaker, version_id: await deploy(api, game, matchmaker) };
}

type HasApi = { api: Api };

/** Sends a find; in the game mode "default", unless the body has others. */
export function find({ api }: HasApi, { public_token }: TestGame, body: object = {}, signal?: AbortSignal) {
  const options = { token: public_token, body: { game_modes: ['default'], ...body }, ...(signal ? { signal } : {}) };
  return api.call('POST', '/matchmaker/lobbies/find', options);
}

export function join({ api }: HasApi, { public_token }: TestGame, lobby_id: string): Promise<Answer> {
  return api.post('/matchmaker/lobbies/join', public_token, { lobby_id });
}

/** Returns the receipt of an answered request, as its developer reads it. */
export async function receiptOf({ api }: HasApi, game: TestGame, { headers }: Pick<Answer, 'headers'>) {
  const { game_id, namespace_id, cloud_token: token } = game;
  const path = `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/receipts/${headers.get('rvt-ray-id')}`;
  return (await api.ok('GET', path, { token })).receipt;
}

/** A seat of a player. */
export interface TestSeat {
  lobby_id: string;
  player_token: string;
}

/** Returns the seat of an answer to find or join. Throws if the answer has none. */
export async function seatOf(answer: Promise<Answer>): Promise<TestSeat> {
  const { status, body } = await answer;
  if (status !== 200) throw new Error(`no seat: ${status} ${JSON.stringify(body)}`);
  return { lobby_id: body.lobby.lobby_id, player_token: body.player.token };
}

export type GameServer = Awaited<ReturnType<typeof connectGameServer>>;

/** Returns the calls of a lobby's server, with its token. Waits until the server has started. */
export async function connectGameServer(muster: HasApi, game: TestGame, lobby_id: string) {
  return await waitFor(() => findGameServer(muster, game, lobby_id), `the server of lobby ${lobby_id}`);
}

/** Returns the calls of a lobby's server; undefined if it has not started, or has ended. */
export async function findGameServer(muster: HasApi, game: TestGame, lobby_id: string) {
  const server = await readServer(muster, game, lobby_id);
  if (!server) return undefined;
  const token = server.environment.SERVICE_TOKEN ?? '';
  return { lobby_id, token, ...server, ...createGameServerClient(muster, token) };
}

/** Returns the calls of a lobby's server, with any token. */
export function createGameServerClient({ api }: HasApi, token: string | undefined) {
  const { get, post, put } = api;
  return {
    ready: () => post('/matchmaker/lobbies/ready', token),
    setClosed: (is_closed: boolean) => put('/matchmaker/lobbies/closed', token, { is_closed }),
    setState: (state: unknown) => put('/matchmaker/lobbies/state', token, state),
    getState: (lobby_id: string) => get(`/matchmaker/lobbies/${lobby_id}/state`, token),
    connected: (player_token: string) => post('/matchmaker/players/connected', token, { player_token }),
    disconnected: (player_token: string) => post('/matchmaker/players/disconnected', token, { player_token }),
  };
}

/** Waits for the first server of a game. Returns the id of its lobby. */
export async function waitForFirstLobby(muster: HasApi, game: TestGame): Promise<string> {
  const server = await waitFor(async () => (await listServers(muster, game))[0], 'a lobby');
  return server.tags.lobby_id;
}

async function readServer(muster: HasApi, game: TestGame, lobby_id: string): Promise<RunningServer | undefined> {
  const servers = await listServers(muster, game);
  const server = servers.find(({ tags }: { tags: { lobby_id: string } }) => tags.lobby_id === lobby_id);
  const port = server?.network.ports.game?.public_port;
  if (port === undefined) return undefined;
  const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
  return response && { server_id: server.id, environment: await response.json() };
}

interface RunningServer {
  server_id: string;
  environment: Record<string, string | undefined>;
}

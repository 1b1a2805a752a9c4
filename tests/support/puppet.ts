import type { Answer, Api } from './api.ts';
import { deploy, listServers, makeGame, setLimits, type TestGame, uploadScript } from './game.ts';
import type { TestService } from './service.ts';
import { waitFor } from './wait.ts';

/** A lobby server that returns its environment with its token to the test, which makes its calls. */
const PUPPET_SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, SERVICE_LOBBY_ID, PORT_game, READY } = process.env;
Bun.serve({ port: Number(PORT_game), fetch: () => Response.json(process.env) });
console.log('this is ' + SERVICE_LOBBY_ID);
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
if (READY !== 'no') await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
`;

interface PuppetOptions {
  game_modes?: Record<string, object>;
  /** Whether the servers call ready themselves. */
  is_ready?: boolean;
  source?: string;
  ports?: object;
  network_mode?: string;
  /** How many lobbies prod may have. */
  lobby_count_max?: number;
  /** How many players each client may have there. */
  max_players?: number;
}

/** A game on puppets. Its one game mode is "default", unless it is given others. */
export async function makePuppetGame(
  { api, administrator_token }: Pick<TestService, 'api' | 'administrator_token'>,
  options: PuppetOptions = {},
): Promise<TestGame & { build_id: string; version_id: string; matchmaker: object }> {
  const {
    game_modes = { default: {} },
    is_ready = true,
    source = PUPPET_SOURCE,
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

type Asks = { api: Api };

/** Asks for a seat; in the game mode "default", unless the body says otherwise. */
export function find({ api }: Asks, { public_token }: TestGame, body: object = {}, signal?: AbortSignal) {
  const options = { token: public_token, body: { game_modes: ['default'], ...body }, ...(signal ? { signal } : {}) };
  return api.call('POST', '/matchmaker/lobbies/find', options);
}

export function join({ api }: Asks, { public_token }: TestGame, lobby_id: string): Promise<Answer> {
  return api.post('/matchmaker/lobbies/join', public_token, { lobby_id });
}

/** A seat of a player. */
export interface TestSeat {
  lobby_id: string;
  player_token: string;
}

/** The seat of an answer to find or join, which must be one. */
export async function seatOf(answer: Promise<Answer>): Promise<TestSeat> {
  const { status, body } = await answer;
  if (status !== 200) throw new Error(`no seat: ${status} ${JSON.stringify(body)}`);
  return { lobby_id: body.lobby.lobby_id, player_token: body.player.token };
}

export type Host = Awaited<ReturnType<typeof hostOf>>;

/** Speaks as a lobby's server does, with its token. Waits until the server is there. */
export async function hostOf(muster: Asks, game: TestGame, lobby_id: string) {
  const puppet = await waitFor(() => askPuppet(muster, game, lobby_id), `the server of lobby ${lobby_id}`);
  const token = puppet.environment.SERVICE_TOKEN ?? '';
  return { lobby_id, token, ...puppet, ...createHost(muster, token) };
}

/** What a lobby's server says of itself and its players, with its token or another. */
export function createHost({ api }: Asks, token: string | undefined) {
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

/** The only lobby of a game, by the server that it runs on. */
export async function onlyLobby(muster: Asks, game: TestGame): Promise<string> {
  const server = await waitFor(async () => (await listServers(muster, game))[0], 'a lobby');
  return server.tags.lobby_id;
}

async function askPuppet(muster: Asks, game: TestGame, lobby_id: string): Promise<Puppet | undefined> {
  const servers = await listServers(muster, game);
  const server = servers.find(({ tags }: { tags: { lobby_id: string } }) => tags.lobby_id === lobby_id);
  const port = server?.network.ports.game?.public_port;
  if (port === undefined) return undefined;
  const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
  return response && { server_id: server.id, environment: await response.json() };
}

interface Puppet {
  server_id: string;
  environment: Record<string, string | undefined>;
}

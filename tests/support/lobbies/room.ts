import { join } from 'node:path';
import { deploy, makeGame, type TestGame, uploadScript } from '../game.ts';
import type { TestService } from '../service.ts';

/** The source of the example room. */
export const ROOM_SOURCE = await Bun.file(join(import.meta.dir, '../../../examples/room.ts')).text();

/** A room in which a player who sends "close" closes the lobby, and gets a reply once it is closed. */
export const CLOSABLE_ROOM_SOURCE = ROOM_SOURCE.replace(
  'message(socket, text) {',
  `async message(socket, text) {
      if (text === 'close') {
        await fetch(api + '/matchmaker/lobbies/closed', { method: 'PUT', headers, body: '{"is_closed":true}' });
        return void socket.send('"closed"');
      }`,
);

/** A game server that only reports its lobby ready, repeatedly until the report is answered. */
export const READY_SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN } = process.env;
const request = { method: 'POST', headers: { authorization: 'Bearer ' + SERVICE_TOKEN } };
const call = () => fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', request).then(({ status }) => status < 500, () => false);
while (!(await call())) await Bun.sleep(50);
setInterval(() => {}, 1e9);
`;

/** Makes a game whose namespace prod has one game mode, "default", on servers with this source. */
export async function makeRoomGame(
  { api, administrator_token }: Pick<TestService, 'api' | 'administrator_token'>,
  { source = ROOM_SOURCE, max_players = 10, mode = {} }: { source?: string; max_players?: number; mode?: object } = {},
): Promise<TestGame & { build_id: string }> {
  const game = await makeGame(api, administrator_token);
  const build_id = await uploadScript(api, game, source);
  await deploy(api, game, {
    game_modes: { default: mode },
    max_players,
    docker: { image_id: build_id, ports: { game: { port: 80, protocol: 'http' } } },
  });
  return { ...game, build_id };
}

/** A player in a room: its socket and its last message. */
export interface RoomPlayer {
  socket: WebSocket;
  lobby_id: string;
  /** The address of the room. */
  host: string;
  token: string;
  /** The positions of all players, from the room's last message. */
  positions: Record<string, { x: number; y: number }>;
  is_closed: boolean;
  close(): Promise<void>;
  /** Settles when either side closes the socket. */
  closed: Promise<void>;
}

/** Connects with the answer of find or join, as a game's client does. Fails if the room refuses the player. */
export async function enterRoom(answer: {
  lobby: { lobby_id: string };
  ports: { game: { host: string } };
  player: { token: string };
}): Promise<RoomPlayer> {
  const { lobby, ports, player } = answer;
  const socket = new WebSocket(`ws://${ports.game.host}/?token=${player.token}`);
  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const room: RoomPlayer = {
    socket,
    lobby_id: lobby.lobby_id,
    host: ports.game.host,
    token: player.token,
    positions: {},
    is_closed: false,
    closed: closed.promise,
    async close() {
      socket.close();
      await closed.promise;
    },
  };
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(String(data));
    if (message === 'closed') room.is_closed = true;
    else if ('you' in message) opened.resolve();
    else room.positions = message;
  };
  socket.onerror = () => opened.reject(new Error('the room refuses the player'));
  socket.onclose = () => {
    opened.reject(new Error('the room closed the socket'));
    closed.resolve();
  };
  await opened.promise;
  return room;
}

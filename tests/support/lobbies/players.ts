import { type Api, createApi } from '../api.ts';
import type { TestGame } from '../game.ts';
import { waitFor } from '../wait.ts';
import { enterRoom, type RoomPlayer } from './room.ts';

/** The answer of find, for the game mode "default" of prod. */
export async function findSeat({ api }: { api: Api }, { public_token: token }: Pick<TestGame, 'public_token'>) {
  return await api.ok('POST', '/matchmaker/lobbies/find', { token, body: { game_modes: ['default'] } });
}

/** Finds a seat in the demo as its page does, with the public token in the page. */
export async function findSeatInDemo(url: string) {
  return await findSeat({ api: createApi(url) }, { public_token: await readDemoToken(url) });
}

/** Returns the public token in the page of the demo. */
export async function readDemoToken(url: string): Promise<string> {
  const page = await (await fetch(`${url}/demo`)).text();
  const [, token] = /const token = '([^']+)'/.exec(page) ?? [];
  if (token === undefined) throw new Error('the page of the demo has no token');
  return token;
}

/** Two players in one room. */
export async function enterTogether(service: { api: Api }, game: TestGame): Promise<[RoomPlayer, RoomPlayer]> {
  const one = await enterRoom(await findSeat(service, game));
  const other = await enterRoom(await findSeat(service, game));
  if (one.lobby_id !== other.lobby_id) throw new Error('the two are not in one lobby');
  return [one, other];
}

/** Moves both players to new positions, and waits until each sees both. */
export async function seeEachOther(one: RoomPlayer, other: RoomPlayer): Promise<void> {
  const sent = [one, other].map(({ socket }) => {
    const position = { x: Math.random(), y: Math.random() };
    socket.send(JSON.stringify(position));
    return position;
  });
  const sees = ({ positions }: RoomPlayer) =>
    sent.every(({ x, y }) => Object.values(positions).some((position) => position.x === x && position.y === y));
  await waitFor(() => sees(one) && sees(other), 'both players to see both');
}

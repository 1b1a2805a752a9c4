import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import type { Answer } from '../../support/api.ts';
import type { TestGame } from '../../support/game.ts';
import {
  connectGameServer,
  find,
  type GameServer,
  join,
  makeControlledGame,
  seatOf,
} from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

let game: TestGame;
let game_server: GameServer;
const muster = shareService();
beforeAll(async () => {
  game = await makeControlledGame(muster);
  game_server = await connectGameServer(muster, game, (await seatOf(find(muster, game))).lobby_id);
});

const PREVENT = { prevent_auto_create_lobby: true };

describe('a closed lobby', () => {
  test.each([
    { promise: 'is not closed without is_closed', body: {} },
    { promise: 'is not closed by a string', body: { is_closed: 'yes' } },
    { promise: 'is not closed by null', body: { is_closed: null } },
  ])('$promise', async ({ body }) => {
    const answer = await muster.api.put('/matchmaker/lobbies/closed', game_server.token, body);
    expect(outcomeOf(answer)).toBe('400 API_BAD_BODY');
    expect(answer.body.message).toContain('"is_closed"');
  });

  test('takes joins but no finds after the acknowledgement, and finds again once it is open', async () => {
    const closing = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, closing));
    const server = await connectGameServer(muster, closing, lobby_id);
    const findThere = () => find(muster, closing, PREVENT);
    for (let time = 0; time < 5; time += 1) {
      expect(await server.setClosed(true)).toMatchObject({ status: 200, body: {} });
      const answers = await Promise.all([findThere(), findThere(), findThere(), findThere()]);
      expect(new Set(answers.map(({ body }) => body.code))).toEqual(new Set(['MATCHMAKER_NO_AVAILABLE_LOBBIES']));
      expect((await seatOf(join(muster, closing, lobby_id))).lobby_id).toBe(lobby_id);
      expect(outcomeOf(await server.setClosed(false))).toBe('200');
      expect((await seatOf(findThere())).lobby_id).toBe(lobby_id);
    }
  });

  test('is closed and opened by a cloud token of its game, but not by that of another game', async () => {
    const closing = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, closing));
    const path = ({ game_id }: TestGame) => `/cloud/games/${game_id}/matchmaker/lobbies/${lobby_id}`;
    const setClosed = (is_closed: boolean, of: TestGame = closing) =>
      muster.api.put(`${path(of)}/closed`, of.cloud_token, { is_closed });
    expect(outcomeOf(await setClosed(true, game))).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
    const closedAt = async () => {
      const { game_id, namespace_id, cloud_token: token } = closing;
      const details = `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/lobbies/${lobby_id}`;
      return (await muster.api.ok('GET', details, { token })).lobby.closed_ts;
    };
    expect(await closedAt()).toBeUndefined();
    expect(outcomeOf(await setClosed(true))).toBe('200');
    const closed_ts = await closedAt();
    expect(closed_ts).toMatch(/^\d{4}-.*Z$/);
    const { game_id, namespace_id, cloud_token: token } = closing;
    const running = `/cloud/games/${game_id}/namespaces/${namespace_id}/analytics/matchmaker/live`;
    expect((await muster.api.ok('GET', running, { token })).lobbies).toMatchObject([{ is_closed: true, closed_ts }]);
    expect(outcomeOf(await setClosed(true))).toBe('200');
    expect(await closedAt()).toBe(closed_ts);
    expect(outcomeOf(await find(muster, closing, PREVENT))).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
    expect(outcomeOf(await setClosed(false))).toBe('200');
    expect(await closedAt()).toBeUndefined();
    expect((await seatOf(find(muster, closing, PREVENT))).lobby_id).toBe(lobby_id);
    await muster.api.ok('DELETE', path(closing), { token: closing.cloud_token });
    expect(outcomeOf(await setClosed(true))).toBe('400 MATCHMAKER_LOBBY_STOPPED');
  });

  test('closed_ts is cleared when an older release changes is_closed', async () => {
    const closing = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, closing));
    const { game_id, namespace_id, cloud_token: token } = closing;
    const path = `/cloud/games/${game_id}/matchmaker/lobbies/${lobby_id}/closed`;
    const close = async () => expect(outcomeOf(await muster.api.put(path, token, { is_closed: true }))).toBe('200');
    const write = (is_closed: boolean, closed_ts: string | null) =>
      muster.database.queries.execute(sql`
        update lobbies set is_closed = ${is_closed}, closed_ts = ${closed_ts}::timestamptz where lobby_id = ${lobby_id}`);
    const details = `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/lobbies/${lobby_id}`;
    const closedAt = async () => (await muster.api.ok('GET', details, { token })).lobby.closed_ts;
    await write(true, null);
    await close();
    expect(await closedAt()).toBeUndefined();
    await write(false, '2020-01-01T00:00:00Z');
    expect(await closedAt()).toBeUndefined();
    await close();
    expect(Date.parse(await closedAt())).toBeGreaterThan(Date.parse('2020-01-02T00:00:00Z'));
  });

  test('takes no find that begins after the acknowledgement, also among many concurrent ones', async () => {
    const busy = await makeControlledGame(muster, { game_modes: { default: { max_players: 256 } } });
    const server = await connectGameServer(muster, busy, (await seatOf(find(muster, busy))).lobby_id);
    const finds: { started: number; answer: Promise<Answer> }[] = [];
    const ask = (times: number) => {
      for (let time = 0; time < times; time += 1) {
        finds.push({ started: performance.now(), answer: find(muster, busy, PREVENT) });
      }
    };
    ask(10);
    const closing = server.setClosed(true).then(() => performance.now());
    ask(10);
    const closed = await closing;
    ask(10);
    const later = finds.filter(({ started }) => started > closed);
    expect(later).toHaveLength(10);
    for (const { answer } of later) expect((await answer).body.code).toBe('MATCHMAKER_NO_AVAILABLE_LOBBIES');
    await Promise.all(finds.map(({ answer }) => answer));
    expect(await muster.inspector.faults()).toEqual([]);
  });
});

import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import {
  type AnswerDependencies,
  answerWhenReady,
} from '../../../src/features/lobbies/matchmaking/answer-when-ready.ts';
import { UNKEPT_DRAFT } from '../../../src/features/lobbies/matchmaking/receipts/receipt-draft.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { type Matchmaker, openMatchmaker } from '../../support/matchmaker/matchmaker.ts';
import { watchQueries } from '../../support/matchmaker/unnotified-rounds.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService();

/** A committed seat in a lobby that is ready, whose request ends when the test says so. */
async function takeSeat({ database }: Pick<Matchmaker, 'database'>) {
  const game = await makeControlledGame(muster);
  const { namespace_id } = game;
  const { lobby_id } = await seatOf(find(muster, game));
  const [player] = await database.queries.execute<{ player_id: string }>(sql`
    select player_id from players where lobby_id = ${lobby_id}`);
  const deadline = {
    signal: new AbortController().signal,
    ends_at: Number.POSITIVE_INFINITY,
    is_over: false,
    toError: () => new ServiceError('API_CLIENT_GONE', {}),
  };
  return {
    game,
    seat: { lobby_id, code: null, region: 'local', ports: {}, is_new: false },
    players: { namespace_id, player_id: player?.player_id ?? '' },
    deadline,
    draft: UNKEPT_DRAFT,
  };
}

const answerOf = (matchmaker: Matchmaker, change: Partial<AnswerDependencies>): AnswerDependencies => ({
  ...matchmaker,
  clock: muster.clock,
  addressOf: () => undefined,
  request_timeout_ms: 60_000,
  onSeatsFreed() {},
  ...change,
});

test('answer: a request that ends while its tokens are issued keeps no seat', async () => {
  await using matchmaker = await openMatchmaker(muster);
  const held = await takeSeat(matchmaker);
  const tokens = {
    ...matchmaker.tokens,
    issue: (...claims: Parameters<typeof matchmaker.tokens.issue>) => {
      held.deadline.is_over = true;
      return matchmaker.tokens.issue(...claims);
    },
  };
  const answering = answerWhenReady(answerOf(matchmaker, { tokens }), held);
  await expect(answering).rejects.toMatchObject({ code: 'API_CLIENT_GONE' });
  expect(await muster.inspector.removeReasons(held.players.namespace_id)).toEqual(['request_ended']);
});

test('answer: a request whose lobby became ready and stopped does not say that it never became ready', async () => {
  await using matchmaker = await openMatchmaker(muster);
  const { game, seat, ...held } = await takeSeat(matchmaker);
  const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${seat.lobby_id}`;
  await muster.api.ok('DELETE', path, { token: game.cloud_token });
  const answering = answerWhenReady(answerOf(matchmaker, {}), { ...held, seat: { ...seat, ports: null } });
  await expect(answering).rejects.toMatchObject({
    code: 'MATCHMAKER_LOBBY_STOPPED',
    message: expect.stringContaining('find another one'),
  });
});

test('answer: a seat that cannot be released is released once the database answers, and the error is why the request ended', async () => {
  await using matchmaker = await openMatchmaker(muster);
  const held = await takeSeat(matchmaker);
  held.deadline.is_over = true;
  let attempts = 0;
  const database = watchQueries(matchmaker.database, () => {
    attempts += 1;
    throw new ServiceError('DATABASE_UNAVAILABLE', {});
  });
  const answering = answerWhenReady(answerOf(matchmaker, { database }), held);
  await expect(answering).rejects.toMatchObject({ code: 'API_CLIENT_GONE' });
  expect(attempts).toBe(1);
  expect(await muster.inspector.removeReasons(held.players.namespace_id)).toEqual([]);
  expect(await matchmaker.abandoned_seats.release()).toBe(1);
  expect(await muster.inspector.removeReasons(held.players.namespace_id)).toEqual(['request_ended']);
});

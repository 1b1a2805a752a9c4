// The tests of the duel. They play on a real Muster, which starts for them and leaves nothing behind:
// muster test --deploy -- bun test
import { expect, setDefaultTimeout, test } from 'bun:test';
import { advanceClock, call, connect, makeNamespace, solve, until } from './players.js';

setDefaultTimeout(60_000);
const MINUTE_MS = 60_000;

test('two players who look for a duel meet, and three hits win', async () => {
  const { find } = await makeNamespace();
  const [seat, other_seat] = [await find(), await find()];
  expect(other_seat.lobby.lobby_id).toBe(seat.lobby.lobby_id);
  const ada = await connect(seat, 'ada');
  const bob = await connect(other_seat, 'bob');
  for (const text of ['hit', 'hit', 'hit']) ada.socket.send(text);
  await until(() => bob.last.winner);
  expect(bob.last).toEqual({ hits: { ada: 3, bob: 0 }, winner: 'ada' });
});

test('a full duel takes no third player, until one of the two has left', async () => {
  const { find, join } = await makeNamespace();
  const [seat, other_seat] = [await find(), await find()];
  const { lobby_id } = seat.lobby;
  await connect(seat, 'ada');
  const bob = await connect(other_seat, 'bob');
  expect((await find()).lobby.lobby_id).not.toBe(lobby_id);
  await expect(join(lobby_id)).rejects.toThrow('MATCHMAKER_LOBBY_FULL');
  bob.socket.close();
  const third = await until(() => join(lobby_id).catch(() => undefined));
  expect((await connect(third, 'eve')).last.hits).toEqual({ ada: 0, eve: 0 });
});

test('after a crash of the server, its log says so and players find another duel', async () => {
  const { find, namespace_id } = await makeNamespace({ docker: { env: { WITH_TEST_COMMANDS: 'yes' } } });
  const seat = await find();
  const ada = await connect(seat, 'ada');
  ada.socket.send('crash');
  await until(() => ada.is_closed);
  const servers = `/games/${process.env.MUSTER_GAME}/environments/${namespace_id}/servers`;
  const { end } = await until(async () => {
    const [server] = (await call('GET', `${servers}?include_destroyed=true`)).servers;
    const answer = await call('GET', `${servers}/${server.id}/end`);
    return answer.end && answer;
  });
  expect(end).toMatchObject({ has_crashed: true, exit_code: 3 });
  const next = await find();
  expect(next.lobby.lobby_id).not.toBe(seat.lobby.lobby_id);
  await connect(next, 'ada');
});

test('with a captcha, only players who solve it get a seat', async () => {
  const captcha = { requests_before_reverify: 1, verification_ttl: MINUTE_MS, pow: { difficulty: 2 } };
  const { find, token } = await makeNamespace({ captcha });
  const { answer } = await find().catch((error) => error);
  expect(answer.code).toBe('CAPTCHA_CAPTCHA_REQUIRED');
  const client_response = await solve(answer.metadata.pow, token);
  await connect(await find({ captcha: { pow: { client_response } } }), 'ada');
});

test('a player who does not come within two minutes loses the seat', async () => {
  const { find, join } = await makeNamespace();
  const seat = await find();
  const { lobby_id } = seat.lobby;
  await connect(seat, 'ada');
  const late = await find();
  await expect(join(lobby_id)).rejects.toThrow('MATCHMAKER_LOBBY_FULL');
  await advanceClock(2 * MINUTE_MS);
  await connect(await until(() => join(lobby_id).catch(() => undefined)), 'bob');
  await expect(connect(late, 'late')).rejects.toThrow('late has no seat');
});

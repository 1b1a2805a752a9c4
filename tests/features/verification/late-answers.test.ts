import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { deploy, setLimits } from '../../support/game.ts';
import { find, makeControlledGame, receiptOf } from '../../support/game-server.ts';
import { openProvider } from '../../support/provider.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const provider = openProvider();
const muster = shareService({ MUSTER_OUTBOUND_ALLOW: provider.allow, MUSTER_RECEIPTS_PER_SECOND_MAX: '10000' });
afterAll(() => provider[Symbol.asyncDispose]());
beforeEach(() => {
  provider.requests.length = 0;
});

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
type Game = Awaited<ReturnType<typeof makeControlledGame>>;
const verified = () => ({ enabled: true, verification_config: { url: provider.url, secret: SECRET } });
const onAll = () => ({ actions: { find: verified(), create: verified() } });
const create = (game: Game) =>
  muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'default' });

describe('verification: an answer that comes after a change', () => {
  /** Sends a request whose verification is answered only after the changes. */
  async function answerAfterChange(
    ask: () => ReturnType<typeof create>,
    status: number,
    change: () => Promise<unknown>,
  ) {
    const request_count = provider.requests.length;
    const late = Promise.withResolvers<Response>();
    provider.answer = () => late.promise;
    const answering = ask();
    await waitFor(() => provider.requests.length === request_count + 1, 'the request of the verification');
    provider.answer = () => new Response(null, { status: 204 });
    await change();
    late.resolve(new Response(null, { status }));
    return await answering;
  }

  const WAYS: [string, (game: Game) => ReturnType<typeof create>][] = [
    ['find', (game) => find(muster, game)],
    ['create', create],
  ];
  describe.each(WAYS)('%s', (_name, ask) => {
    test.each([204, 410])(
      'of the version: after %d for the old version, the new one verifies again and admits the player',
      async (status) => {
        const game = await makeControlledGame(muster, { game_modes: { default: onAll() } });
        const answer = await answerAfterChange(
          () => ask(game),
          status,
          async () => {
            game.version_id = await deploy(muster.api, game, game.matchmaker);
          },
        );
        expect(outcomeOf(answer)).toBe('200');
        // The second request is no repetition of the first.
        const ids = provider.requests.map(({ headers }) => headers.get('webhook-id'));
        expect(ids).toEqual([answer.headers.get('rvt-ray-id'), expect.stringMatching(/^[0-9a-f-]{36}$/)]);
        expect(new Set(ids).size).toBe(2);
        const { game_id, namespace_id, cloud_token: token, version_id } = game;
        const path = `/cloud/games/${game_id}/namespaces/${namespace_id}/analytics/matchmaker/live`;
        const { lobbies } = await muster.api.ok('GET', path, { token });
        const { lobby_id } = answer.body.lobby;
        expect(lobbies).toMatchObject([{ lobby_id, is_outdated: false }]);
        expect(await receiptOf(muster, game, answer)).toMatchObject({
          version_id,
          verification: { is_accepted: true },
        });
      },
    );

    test('of the version to one without verification: the old answer does not count', async () => {
      const game = await makeControlledGame(muster, { game_modes: { default: onAll() } });
      const open = { default: { actions: { create: { enabled: true } } } };
      const answer = await answerAfterChange(
        () => ask(game),
        410,
        async () => {
          game.version_id = await deploy(muster.api, game, { ...game.matchmaker, game_modes: open });
        },
      );
      expect(outcomeOf(answer)).toBe('200');
      const receipt = await receiptOf(muster, game, answer);
      expect([receipt.version_id, receipt.verification]).toEqual([game.version_id, undefined]);
    });

    test('of the version to one without the game mode: the receipt says so', async () => {
      const game = await makeControlledGame(muster, { game_modes: { default: onAll() } });
      const answer = await answerAfterChange(
        () => ask(game),
        204,
        async () => {
          game.version_id = await deploy(muster.api, game, { ...game.matchmaker, game_modes: { other: {} } });
        },
      );
      expect(outcomeOf(answer)).toBe('404 MATCHMAKER_GAME_MODE_NOT_FOUND');
      const { version_id, request } = await receiptOf(muster, game, answer);
      expect([version_id, request.regions]).toEqual([game.version_id, undefined]);
    });

    test('of the limits: the new ones apply', async () => {
      const limits = { lobby_count_max: 1, max_players: 1 };
      const game = await makeControlledGame(muster, {
        game_modes: { default: { ...onAll(), max_players: 1 } },
        ...limits,
      });
      expect(outcomeOf(await find(muster, game))).toBe('200');
      const as_developer = { ...game, token: game.cloud_token };
      const raised = { lobby_count_max: 4, max_players: 4 };
      const answer = await answerAfterChange(
        () => ask(game),
        204,
        () => setLimits(muster.api, as_developer, raised),
      );
      expect(outcomeOf(answer)).toBe('200');
      const refused = await answerAfterChange(
        () => ask(game),
        204,
        () => setLimits(muster.api, as_developer, { ...raised, max_players: 2 }),
      );
      expect(outcomeOf(refused)).toBe('400 MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE');
    });
  });
});

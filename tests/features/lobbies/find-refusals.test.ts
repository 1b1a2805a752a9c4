import { beforeAll, describe, expect, test } from 'bun:test';
import type { TestGame } from '../../support/game.ts';
import { find, makeControlledGame } from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();

const GAME_MODES = {
  default: {},
  small: { max_players: 1 },
  tagged: { taggable: true },
  dynamic: { allow_dynamic_max_players: true, max_players: 4, max_players_direct: 6 },
  not_found: { actions: { find: { enabled: false } } },
  with_identity: { actions: { find: { enabled: true, identity_requirement: 'registered' } } },
  nowhere: { regions: {} },
};

interface Refusal {
  promise: string;
  body: object;
  outcome: string;
  message: string;
}

const eight_tags = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`tag ${index}`, '']));

const REFUSALS: Refusal[] = [
  {
    promise: 'without game_modes',
    body: { game_modes: undefined },
    outcome: '400 API_BAD_BODY',
    message: '"game_modes"',
  },
  {
    promise: 'no game mode',
    body: { game_modes: [] },
    outcome: '400 MATCHMAKER_NO_GAME_MODE_PROVIDED',
    message: 'The list game_modes is empty. Name at least one game mode.',
  },
  {
    promise: 'an unknown game mode',
    body: { game_modes: ['default', 'chess'] },
    outcome: '404 MATCHMAKER_GAME_MODE_NOT_FOUND',
    message: '"chess"',
  },
  {
    promise: 'a ninth tag',
    body: { game_modes: ['tagged'], tags: { ...eight_tags, ninth: '' } },
    outcome: '400 MATCHMAKER_TOO_MANY_TAGS',
    message: 'The request has more than 8 tags. Send fewer.',
  },
  {
    promise: 'a tag whose name has more than 128 bytes',
    body: { game_modes: ['tagged'], tags: { [`${'é'.repeat(64)}a`]: '' } },
    outcome: '400 MATCHMAKER_TAG_NAME_TOO_LONG',
    message: 'longer than 128 bytes',
  },
  {
    promise: 'a tag of more than 512 bytes',
    body: { game_modes: ['tagged'], tags: { map: `${'é'.repeat(256)}a` } },
    outcome: '400 MATCHMAKER_TAG_TOO_LONG',
    message: 'longer than 512 bytes',
  },
  {
    promise: 'tags that are not strings',
    body: { game_modes: ['tagged'], tags: { map: 1 } },
    outcome: '400 API_BAD_BODY',
    message: '"tags.map"',
  },
  ...['\0', '\ud800'].flatMap((text) => [
    {
      promise: `a tag whose name contains ${JSON.stringify(text)}, which the database cannot store`,
      body: { game_modes: ['tagged'], tags: { [`map${text}`]: 'ice' } },
      outcome: '400 API_BAD_BODY',
      message: 'the character zero or half a character',
    },
    {
      promise: `a tag that contains ${JSON.stringify(text)}`,
      body: { game_modes: ['tagged'], tags: { map: text } },
      outcome: '400 API_BAD_BODY',
      message: 'the character zero or half a character',
    },
  ]),
  {
    promise: 'tags if one of the game modes allows none',
    body: { game_modes: ['tagged', 'default'], tags: { map: 'ice' } },
    outcome: '400 MATCHMAKER_TAGS_DISABLED',
    message: '"default"',
  },
  {
    promise: 'a maximum if one of the game modes has a fixed one',
    body: { game_modes: ['dynamic', 'default'], max_players: 2 },
    outcome: '400 MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED',
    message: '"default"',
  },
  ...[0, -1, 7].map((max_players) => ({
    promise: `a maximum of ${max_players} outside the allowed 1 to 6`,
    body: { game_modes: ['dynamic'], max_players },
    outcome: '400 MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID',
    message: 'from 1 to 6',
  })),
  {
    promise: 'half a player',
    body: { game_modes: ['dynamic'], max_players: 1.5 },
    outcome: '400 API_BAD_BODY',
    message: '"max_players"',
  },
  {
    promise: 'an unknown region',
    body: { regions: ['local', 'moon'] },
    outcome: '404 MATCHMAKER_REGION_NOT_FOUND',
    message: '"moon"',
  },
  { promise: 'an empty list of regions', body: { regions: [] }, outcome: '400 API_BAD_BODY', message: '"regions"' },
  {
    promise: 'a game mode without a region, also if no lobby may be created',
    body: { game_modes: ['nowhere'], prevent_auto_create_lobby: true },
    outcome: '400 MATCHMAKER_AUTO_CREATE_FAILED',
    message: 'None of the requested game modes',
  },
  {
    promise: 'a game mode that does not allow find',
    body: { game_modes: ['not_found'] },
    outcome: '400 MATCHMAKER_FIND_DISABLED',
    message: 'does not allow find',
  },
  {
    promise: 'a game mode that does not allow find beside one that does, if no lobby may be created',
    body: { game_modes: ['default', 'not_found'], prevent_auto_create_lobby: true },
    outcome: '400 MATCHMAKER_FIND_DISABLED',
    message: 'does not allow find',
  },
  {
    promise: 'a game mode for players with an identity',
    body: { game_modes: ['with_identity'] },
    outcome: '400 MATCHMAKER_IDENTITY_REQUIRED',
    message: 'identity_requirement',
  },
  {
    promise: 'no lobby, if none may be created',
    body: { prevent_auto_create_lobby: true },
    outcome: '400 MATCHMAKER_NO_AVAILABLE_LOBBIES',
    message: 'prevent_auto_create_lobby',
  },
];

describe('find is refused', () => {
  let game: TestGame;
  beforeAll(async () => {
    game = await makeControlledGame(muster, { game_modes: GAME_MODES });
  });

  test.each(REFUSALS)('$promise', async ({ body, outcome, message }) => {
    const before = await muster.inspector.measure();
    const answer = await find(muster, game, body);
    expect(outcomeOf(answer)).toBe(outcome);
    expect(answer.body.message).toContain(message);
    expect(await muster.inspector.measure()).toEqual(before);
  });

  test('in a namespace whose version has no game modes', async () => {
    const { api } = muster;
    const path = `/cloud/games/${game.game_id}/namespaces/${game.staging_id}/tokens/public`;
    const { token } = await api.ok('POST', path, { token: game.cloud_token });
    const answer = await api.post('/matchmaker/lobbies/find', token, { game_modes: ['default'] });
    expect(outcomeOf(answer)).toBe('404 MATCHMAKER_GAME_MODE_NOT_FOUND');
  });
});

import { describe, expect, test } from 'bun:test';
import { LobbyIndex, type RunningLobby } from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-index.ts';
import { planSeats } from '../../../src/features/lobbies/matchmaking/rounds/planner.ts';
import type {
  FindRequest,
  JoinRequest,
  SeatRequest,
} from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import { UNLIMITED_CLIENT } from '../../support/game-limits.ts';

const NAMESPACE = 'namespace';

function lobby(lobby_id: string, more: Partial<RunningLobby> = {}): RunningLobby {
  return {
    lobby_id,
    version_id: 'new',
    game_mode: 'default',
    region: 'here',
    tags: {},
    is_closed: false,
    publicity: null,
    max_players_normal: 10,
    max_players_direct: 12,
    max_players_party: 10,
    player_count: 1,
    ...more,
  };
}

function find(player_id: string, search: Partial<FindRequest['search']> = {}): FindRequest {
  const maxima = { max_players_normal: 2, max_players_direct: 2, max_players_party: 2 };
  return {
    kind: 'find',
    player_id,
    game_id: 'game',
    namespace_id: NAMESPACE,
    version_id: 'new',
    address: '',
    client: UNLIMITED_CLIENT,
    search: {
      game_modes: ['default'],
      regions: ['here'],
      tags: {},
      new_lobby: {
        game_mode: 'default',
        region: 'here',
        tags: {},
        ...maxima,
        publicity: null,
        lobby_config: undefined,
      },
      ...search,
    },
  };
}

function join(player_id: string, lobby_id: string): JoinRequest {
  const place = { game_id: 'game', namespace_id: NAMESPACE, address: '', client: UNLIMITED_CLIENT };
  return { kind: 'join', player_id, ...place, lobby_id };
}

/** Returns the outcome of each request: a lobby, a new one by its number, or a refusal. */
function outcomes(requests: SeatRequest[], lobbies: RunningLobby[]): string[] {
  const index = new LobbyIndex();
  for (const one of lobbies) index.set(one);
  const { assignments, new_lobbies, refusals } = planSeats(requests, (namespace_id) =>
    namespace_id === NAMESPACE ? index : new LobbyIndex(),
  );
  const outcome_of = new Map<string, string>();
  for (const { request, lobby_id } of assignments) outcome_of.set(request.player_id, lobby_id);
  for (const [number, { first_requests }] of new_lobbies.entries()) {
    for (const { player_id } of first_requests) outcome_of.set(player_id, `new ${number}`);
  }
  for (const { request, code } of refusals) outcome_of.set(request.player_id, code);
  return requests.map(({ player_id }) => outcome_of.get(player_id) ?? 'nothing');
}

interface Case {
  promise: string;
  lobbies?: RunningLobby[];
  requests: SeatRequest[];
  outcomes: string[];
}

const REFUSALS: Case[] = [
  {
    promise: 'no lobby is open and none may be created',
    requests: [find('a', { new_lobby: undefined })],
    outcomes: ['MATCHMAKER_NO_AVAILABLE_LOBBIES'],
  },
  {
    promise: 'closed and private lobbies are not found',
    lobbies: [lobby('one', { is_closed: true }), lobby('two', { publicity: 'private' })],
    requests: [find('a', { new_lobby: undefined })],
    outcomes: ['MATCHMAKER_NO_AVAILABLE_LOBBIES'],
  },
  {
    promise: 'lobbies of another version are not found',
    lobbies: [lobby('one', { version_id: 'old' })],
    requests: [find('a', { new_lobby: undefined })],
    outcomes: ['MATCHMAKER_NO_AVAILABLE_LOBBIES'],
  },
  {
    promise: 'lobbies of other game modes and regions are not found',
    lobbies: [lobby('one', { game_mode: 'other' }), lobby('two', { region: 'there' })],
    requests: [find('a', { new_lobby: undefined })],
    outcomes: ['MATCHMAKER_NO_AVAILABLE_LOBBIES'],
  },
  {
    promise: 'lobbies without one of the tags, or with another value, are not found',
    lobbies: [lobby('one', { tags: { map: 'ice' } }), lobby('two', { tags: { map: 'sand', mode: 'fast' } })],
    requests: [find('a', { tags: { map: 'ice', mode: 'fast' }, new_lobby: undefined })],
    outcomes: ['MATCHMAKER_NO_AVAILABLE_LOBBIES'],
  },
  {
    promise: 'an inherited property is no tag',
    lobbies: [lobby('one')],
    requests: [find('a', { tags: { constructor: '' }, new_lobby: undefined })],
    outcomes: ['MATCHMAKER_NO_AVAILABLE_LOBBIES'],
  },
  {
    promise: 'the last seat is given once',
    lobbies: [lobby('one', { player_count: 9 })],
    requests: [find('a', { new_lobby: undefined }), find('b', { new_lobby: undefined })],
    outcomes: ['one', 'MATCHMAKER_NO_AVAILABLE_LOBBIES'],
  },
  {
    promise: 'an unknown lobby, or one of another namespace, counts as stopped',
    lobbies: [lobby('one')],
    requests: [join('a', 'none'), { ...join('b', 'one'), namespace_id: 'other' }],
    outcomes: ['MATCHMAKER_LOBBY_STOPPED', 'MATCHMAKER_LOBBY_STOPPED'],
  },
  {
    promise: 'join stops at the direct maximum',
    lobbies: [lobby('one', { player_count: 10 })],
    requests: [join('a', 'one'), join('b', 'one'), join('c', 'one')],
    outcomes: ['one', 'one', 'MATCHMAKER_LOBBY_FULL'],
  },
  {
    promise: 'a direct maximum below the normal one is for joins only',
    lobbies: [lobby('one', { player_count: 4, max_players_direct: 4 })],
    requests: [join('a', 'one'), find('b')],
    outcomes: ['MATCHMAKER_LOBBY_FULL', 'one'],
  },
];

const SEATS: Case[] = [
  {
    promise: 'the fullest lobby first, then the next one',
    lobbies: [
      lobby('empty', { player_count: 0 }),
      lobby('half', { player_count: 5 }),
      lobby('nearly', { player_count: 9 }),
    ],
    requests: [find('a'), find('b'), find('c')],
    outcomes: ['nearly', 'half', 'half'],
  },
  {
    promise: 'the fullest is the one with the fewest free seats, whatever its size',
    lobbies: [
      lobby('large', { max_players_normal: 100, player_count: 90 }),
      lobby('small', { max_players_normal: 4, player_count: 1 }),
    ],
    requests: [find('a')],
    outcomes: ['small'],
  },
  {
    promise: 'the fullest of all requested game modes and regions',
    lobbies: [
      lobby('one', { player_count: 2 }),
      lobby('two', { game_mode: 'other', region: 'there', player_count: 8 }),
      lobby('three', { region: 'there', player_count: 7 }),
    ],
    requests: [find('a', { game_modes: ['default', 'other'], regions: ['here', 'there'] })],
    outcomes: ['two'],
  },
  {
    promise: 'a lobby may have more tags than requested; without tags any lobby suits',
    lobbies: [lobby('one', { tags: { map: 'ice', mode: 'fast' } })],
    requests: [find('a', { tags: { map: 'ice' } }), find('b')],
    outcomes: ['one', 'one'],
  },
  {
    promise: 'a join gets a seat in a closed, private or outdated lobby',
    lobbies: [
      lobby('one', { is_closed: true }),
      lobby('two', { publicity: 'private' }),
      lobby('three', { version_id: 'old' }),
    ],
    requests: [join('a', 'one'), join('b', 'two'), join('c', 'three')],
    outcomes: ['one', 'two', 'three'],
  },
  {
    promise: 'a join takes a seat before a later find',
    lobbies: [lobby('one', { player_count: 9 })],
    requests: [join('a', 'one'), find('b')],
    outcomes: ['one', 'new 0'],
  },
  {
    promise: 'requests that create a lobby share it, up to its maximum',
    requests: [find('a'), find('b'), find('c')],
    outcomes: ['new 0', 'new 0', 'new 1'],
  },
  {
    promise: 'a request that may not create gets a seat in a lobby that another one creates',
    requests: [find('a'), find('b', { new_lobby: undefined })],
    outcomes: ['new 0', 'new 0'],
  },
  {
    promise: 'requests that do not suit a new lobby get no seat in it',
    requests: [
      find('a'),
      find('b', { tags: { map: 'ice' } }),
      { ...find('c'), version_id: 'old' },
      { ...find('d'), namespace_id: 'other' },
      find('e'),
    ],
    outcomes: ['new 0', 'new 1', 'new 2', 'new 3', 'new 0'],
  },
];

describe('plan: a refusal', () => {
  test.each(REFUSALS)('$promise', ({ requests, lobbies = [], outcomes: expected }) => {
    expect(outcomes(requests, lobbies)).toEqual(expected);
  });
});

describe('plan: a seat', () => {
  test.each(SEATS)('$promise', ({ requests, lobbies = [], outcomes: expected }) => {
    expect(outcomes(requests, lobbies)).toEqual(expected);
  });
});

test('plan: a new lobby is as the first request for it says, in the namespace and version of that request', () => {
  const creator = find('a', { tags: { map: 'ice' } });
  const { new_lobbies, assignments, refusals } = planSeats([creator], () => new LobbyIndex());
  const { new_lobby } = creator.search;
  expect(new_lobbies.map(({ lobby: made }) => made)).toEqual(new_lobby ? [new_lobby] : []);
  expect(new_lobbies).toMatchObject([{ namespace_id: NAMESPACE, game_id: 'game', version_id: 'new' }]);
  expect([assignments, refusals]).toEqual([[], []]);
});

test('plan: a lobby with the tags is found among any number without them', () => {
  const index = new LobbyIndex();
  const snow = { map: 'ice', weather: 'snow' };
  for (let number = 0; number < 200; number += 1) {
    index.set(lobby(`other ${number}`, { player_count: 9, tags: { map: 'ice' } }));
    index.set(lobby(`another ${number}`, { player_count: 9, tags: { weather: 'snow' } }));
  }
  index.set(lobby('last', { player_count: 8, tags: snow }));
  const requests = [find('a', { tags: snow }), find('b', { tags: snow }), find('c', { tags: snow })];
  const { assignments, new_lobbies } = planSeats(requests, () => index);
  expect(assignments.map(({ lobby_id }) => lobby_id)).toEqual(['last', 'last']);
  expect(new_lobbies).toHaveLength(1);
});

test('plan: a lobby is found among any number on machines that finds avoid', () => {
  const index = new LobbyIndex();
  const avoided = Array.from({ length: 200 }, (_, number) => `avoided ${number}`);
  for (const lobby_id of avoided) index.set(lobby(lobby_id, { player_count: 9 }));
  index.set(lobby('other'));
  index.avoid(new Set(avoided));
  const choose = (player_id: string) => planSeats([find(player_id)], () => index).assignments[0]?.lobby_id;
  expect(choose('a')).toBe('other');
  index.avoid(new Set(avoided.slice(1)));
  expect(choose('b')).toBe('avoided 0');
});

import fc from 'fast-check';
import type { CreateBody, FindBody } from '../../../src/features/lobbies/wire.ts';
import type { LobbyState } from './matchmaking-state.ts';

const nameless = <Members extends object>(members: Members) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Members;

export const number = fc.nat(11);
export const client = fc.constantFrom(1, 1, 2);
const mostly = <Value>(usual: fc.Arbitrary<Value>, unusual: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 24, arbitrary: usual }, { weight: 1, arbitrary: unusual });
const players = mostly(fc.constantFrom(undefined, undefined, undefined, 1, 2, 2, 3), fc.constantFrom(4, 5));
const tags = fc.constantFrom(
  undefined,
  undefined,
  undefined,
  undefined,
  { color: 'red' },
  { color: 'red', size: 'big' },
);

export const findBody: fc.Arbitrary<FindBody> = fc
  .record({
    game_modes: mostly<string[]>(
      fc.constantFrom(['wide'], ['wide'], ['wide'], ['small'], ['wide', 'small'], ['small', 'wide']),
      fc.constantFrom(['gone'], ['small', 'gone']),
    ),
    regions: mostly<string[] | undefined>(
      fc.constantFrom(undefined, undefined, undefined, ['local'], ['far'], ['far', 'local']),
      fc.constant(['nowhere']),
    ),
    tags,
    players,
    prevent_auto_create_lobby: fc.constantFrom(undefined, undefined, undefined, true),
  })
  .map(nameless) as fc.Arbitrary<FindBody>;

export const createBody = fc
  .record({
    game_mode: mostly(fc.constantFrom('wide', 'wide', 'small'), fc.constant('gone')),
    region: fc.constantFrom(undefined, undefined, 'far'),
    publicity: fc.constantFrom(undefined, 'public', 'private'),
    tags,
    players,
  })
  .map(nameless) as fc.Arbitrary<CreateBody>;

export interface Join {
  number: number;
  players: number | undefined;
}

export const join: fc.Arbitrary<Join> = fc.record({ number, players });

export const joinBody = (lobby: LobbyState | undefined, players: number | undefined) => ({
  lobby_id: lobby?.lobby_id ?? crypto.randomUUID(),
  ...(players === undefined ? {} : { players }),
});

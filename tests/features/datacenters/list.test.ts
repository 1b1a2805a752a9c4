import { beforeAll, describe, expect, test } from 'bun:test';
import { contractProblems } from '../../support/contract.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService({ MUSTER_DATACENTER: 'north', MUSTER_DATACENTER_NAME: 'Far North' });
let game: TestGame;
let path: string;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  path = `/games/${game.game_id}/environments/${game.namespace_id}/datacenters`;
});

const list = () => muster.api.ok('GET', path, { token: game.service_token });
const slugs = async (): Promise<string[]> => (await list()).datacenters.map(({ slug }: { slug: string }) => slug);

describe('the list of datacenters', () => {
  test('is closed to players', async () => {
    expect(outcomeOf(await muster.api.get(path, game.public_token))).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    expect(outcomeOf(await muster.api.get(path, undefined))).toBe('401 API_UNAUTHORIZED');
  });

  test("has this machine's own, for every token of the game", async () => {
    for (const token of [game.service_token, game.cloud_token, muster.administrator_token]) {
      const answer = await muster.api.ok('GET', path, { token });
      expect(contractProblems('ServersListDatacentersResponse', answer)).toEqual([]);
      expect(answer.datacenters).toEqual([{ id: expect.any(String), slug: 'north', name: 'Far North' }]);
    }
  });

  test('does not change when a known machine starts again', async () => {
    const readGame = () => muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const { watch } = await readGame();
    const settings = { MUSTER_DATACENTER: 'north', MUSTER_DATACENTER_NAME: 'Far North' };
    await using _beside = await openTestService(settings, { database_of: muster });
    expect((await readGame()).watch).toEqual(watch);
  });

  test('grows by those of other machines, sorted by slug; a machine that starts again updates its name', async () => {
    const [north] = (await list()).datacenters;
    for (const [slug, name] of [
      ['east', 'East'],
      ['south', 'South'],
      ['north', 'Not So Far North'],
    ] as const) {
      const settings = { MUSTER_DATACENTER: slug, MUSTER_DATACENTER_NAME: name };
      await using _beside = await openTestService(settings, { database_of: muster });
    }
    await waitFor(async () => (await slugs()).length === 3, 'both to be listed');
    expect(await slugs()).toEqual(['east', 'north', 'south']);
    const renamed = { ...north, name: 'Not So Far North' };
    await waitFor(async () => (await list()).datacenters[1].name === renamed.name, 'the new name');
    expect((await list()).datacenters[1]).toEqual(renamed);
    const { game: seen } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    expect(seen.available_regions.map(({ region_name_id }: { region_name_id: string }) => region_name_id)).toEqual([
      'east',
      'north',
      'south',
    ]);
  });
});

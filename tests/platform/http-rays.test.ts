import { expect, test } from 'bun:test';
import { createRays, rayRoutes } from '../../src/platform/http/rays.ts';
import { route } from '../../src/platform/http/route.ts';
import { makeCaller } from '../support/callers.ts';
import { openTestApp } from '../support/http-app.ts';

const summary = 'For a test.';

test('perf: only the caller of a request may read how long it took', async () => {
  const rays = createRays();
  const allow = ['identity', 'cloud', 'public'] as const;
  const routes = [
    ...rayRoutes(rays),
    route('GET', '/matchmaker/open', { summary, allow: 'anyone' }, async () => ({})),
    route('GET', '/matchmaker/x', { summary, allow }, async () => ({})),
  ];
  await using app = await openTestApp(routes, { rays });
  const issue = (kind: 'identity' | 'cloud' | 'public') => app.tokens.issue(makeCaller(kind));
  const [ann, bob, cloud, game] = await Promise.all([
    issue('identity'),
    issue('identity'),
    issue('cloud'),
    issue('public'),
  ]);
  const rayOf = async (token: string | undefined, path = '/matchmaker/x') => {
    const { headers } = await app.api.get(path, token);
    return headers.get('rvt-ray-id');
  };
  const canRead = async (token: string, ray_id: string | null) => {
    const { perf_lists } = await app.api.ok('GET', `/cloud/rays/${ray_id}/perf`, { token });
    return perf_lists.length === 1;
  };
  const ann_ray = await rayOf(ann);
  const cloud_ray = await rayOf(cloud);
  expect(await Promise.all([ann, bob, cloud].map((token) => canRead(token, ann_ray)))).toEqual([true, false, false]);
  expect(await Promise.all([ann, bob, cloud].map((token) => canRead(token, cloud_ray)))).toEqual([false, false, true]);
  for (const ray_id of [await rayOf(game), await rayOf(undefined), await rayOf(undefined, '/matchmaker/open')]) {
    expect(await Promise.all([ann, bob, cloud].map((token) => canRead(token, ray_id)))).toEqual([false, false, false]);
  }
});

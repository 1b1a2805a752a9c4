import { expect, test } from 'bun:test';
import { createRays, rayRoutes } from '../../src/platform/http/rays.ts';
import { route } from '../../src/platform/http/route.ts';
import { makeCaller } from '../support/callers.ts';
import { openTestApp } from '../support/http-app.ts';

const summary = 'For a test.';

test('perf: only the caller of a request is told how long it took; for others it never was', async () => {
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
  const askedBy = async (token: string | undefined, path = '/matchmaker/x') => {
    const { headers } = await app.api.get(path, token);
    return headers.get('rvt-ray-id');
  };
  const isTold = async (token: string, ray_id: string | null) => {
    const { perf_lists } = await app.api.ok('GET', `/cloud/rays/${ray_id}/perf`, { token });
    return perf_lists.length === 1;
  };
  const of_ann = await askedBy(ann);
  const of_cloud = await askedBy(cloud);
  expect(await Promise.all([ann, bob, cloud].map((token) => isTold(token, of_ann)))).toEqual([true, false, false]);
  expect(await Promise.all([ann, bob, cloud].map((token) => isTold(token, of_cloud)))).toEqual([false, false, true]);
  for (const ray_id of [await askedBy(game), await askedBy(undefined), await askedBy(undefined, '/matchmaker/open')]) {
    expect(await Promise.all([ann, bob, cloud].map((token) => isTold(token, ray_id)))).toEqual([false, false, false]);
  }
});

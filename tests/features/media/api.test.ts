import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../../support/game.ts';
import { gamePicture, type PicturePaths, PNG, uploadPicture } from '../../support/hub/pictures.ts';
import { openSmallS3 } from '../../support/objects/small-s3.ts';
import { makeGuest } from '../../support/people.ts';
import { openTestService, type TestService } from '../../support/service.ts';

let opened: TestService;
let game: TestGame;
beforeAll(async () => {
  opened = await openTestService();
  game = await makeGame(opened.api, opened.administrator_token);
});
afterAll(() => opened[Symbol.asyncDispose]());

const prepare = (path: string, file: object, token = game.cloud_token) => opened.api.post(path, token, file);

const upload = (paths: PicturePaths, token: string, name = 'me.png', content = PNG) =>
  uploadPicture(opened.api, token, paths, { name, content });

const paths = (kind: string) => ({
  prepare: `/cloud/games/${game.game_id}/${kind}-upload/prepare`,
  complete: `/cloud/games/${game.game_id}/${kind}-upload/:upload_id/complete`,
});

test('a picture is accepted, whatever the pieces in which the storage returns it', async () => {
  await using storage = await openSmallS3();
  storage.splitReads();
  await using slow = await openTestService(storage.settings);
  const { game_id, cloud_token } = await makeGame(slow.api, slow.administrator_token);
  const { answer } = await uploadPicture(slow.api, cloud_token, gamePicture(game_id, 'logo'));
  expect(answer).toMatchObject({ status: 200 });
});

test('a picture is accepted with members that mean nothing, such as the digest of a file of a site', async () => {
  const file = { path: 'me.png', content_length: PNG.length, sha256: 'a'.repeat(64) };
  const { body } = await prepare(paths('logo').prepare, file);
  expect((await fetch(body.presigned_request.url, { method: 'PUT', body: PNG })).status).toBe(200);
});

describe('a picture is refused', () => {
  const CASES: [string, object, string][] = [
    ['avatar', { path: 'a.gif', content_length: 10 }, 'UPLOAD_INVALID'],
    ['avatar', { path: 'a.svg', content_length: 10 }, 'UPLOAD_INVALID'],
    ['avatar', { path: 'a.png', content_length: 2_000_000 }, 'UPLOAD_TOO_LARGE'],
    ['logo', { path: 'a.png', content_length: 5_000_000 }, 'UPLOAD_TOO_LARGE'],
    ['banner', { path: 'a.jpeg', content_length: 10_000_000 }, 'UPLOAD_TOO_LARGE'],
    ['banner', { path: 'a.jpeg', content_length: -1 }, 'API_BAD_BODY'],
  ];
  for (const [kind, file, code] of CASES) {
    test(`${kind} ${JSON.stringify(file)}: ${code}`, async () => {
      expect(await prepare(paths(kind).prepare, file)).toMatchObject({ status: 400, body: { code } });
    });
  }

  test('by the route of builds and sites, which would not show it; its own route accepts it', async () => {
    const { game_id, cloud_token: token } = await makeGame(opened.api, opened.administrator_token);
    for (const kind of ['logo', 'banner', 'avatar']) {
      const own = gamePicture(game_id, kind);
      const body = { path: 'me.png', content_length: PNG.length };
      const { upload_id, presigned_request } = await opened.api.ok('POST', own.prepare, { token, body });
      expect((await fetch(presigned_request.url, { method: 'PUT', body: PNG })).status).toBe(200);
      expect(await opened.api.post(`/cloud/uploads/${upload_id}/complete`, token)).toMatchObject({
        status: 404,
        body: { code: 'UPLOAD_NOT_FOUND' },
      });
      const complete = own.complete.replace(':upload_id', upload_id);
      expect((await opened.api.post(complete, token)).status).toBe(200);
    }
  });

  test('if its content is no picture, or not of the type of its name', async () => {
    const page = Buffer.from('<script>alert(1)</script>');
    const { answer } = await upload(paths('logo'), game.cloud_token, 'logo.png', page);
    expect(answer).toMatchObject({ status: 400, body: { code: 'UPLOAD_INVALID' } });
    const other = await upload(paths('logo'), game.cloud_token, 'logo.jpg');
    expect(other.answer.body.code).toBe('UPLOAD_INVALID');
    const { game: seen } = await opened.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    expect(seen.logo_url).toBeUndefined();
  });

  test('if it belongs to another caller, or was uploaded for another purpose', async () => {
    const other = await makeGame(opened.api, opened.administrator_token);
    const { upload_id } = await upload(paths('logo'), game.cloud_token);
    for (const path of [
      `/cloud/games/${other.game_id}/logo-upload/${upload_id}/complete`,
      `/cloud/games/${other.game_id}/banner-upload/${upload_id}/complete`,
    ]) {
      const answer = await opened.api.post(path, other.cloud_token);
      expect(answer).toMatchObject({ status: 404, body: { code: 'UPLOAD_NOT_FOUND' } });
    }
    expect((await opened.api.get(`/media/game-banner/${upload_id}`)).body.code).toBe('UPLOAD_NOT_FOUND');
    const [one, two] = [await makeGuest(opened.api, game), await makeGuest(opened.api, game)];
    const body = { path: 'a.png', content_length: PNG.length };
    const prepared = await opened.api.ok('POST', '/identity/identities/avatar-upload/prepare', {
      token: one.token,
      body,
    });
    const path = `/identity/identities/avatar-upload/${prepared.upload_id}/complete`;
    expect((await opened.api.post(path, two.token)).body.code).toBe('UPLOAD_NOT_FOUND');
    const group = `/group/groups/${game.group_id}/avatar-upload/${prepared.upload_id}/complete`;
    expect((await opened.api.post(group, one.token)).body.code).toBe('GROUP_INSUFFICIENT_PERMISSIONS');
  });
});

describe('a picture', () => {
  test('is served as it was uploaded, and no script in it runs', async () => {
    const { upload_id, complete, answer } = await upload(paths('logo'), game.cloud_token);
    expect(answer).toMatchObject({ status: 200, body: {} });
    expect((await opened.api.post(complete, game.cloud_token)).status).toBe(200);
    const { game: seen } = await opened.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    expect(seen.logo_url).toBe(`${opened.config.public_url}/media/game-logo/${upload_id}`);
    for (const url of [seen.logo_url, `${seen.logo_url}/logo.png`]) {
      const response = await fetch(url);
      expect(Buffer.from(await response.arrayBuffer())).toEqual(PNG);
      expect(response.headers.get('content-type')).toBe('image/png');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(response.headers.get('content-security-policy')).toContain('sandbox');
    }
  });

  test('to choose for a game is listed, under both paths', async () => {
    const own = await makeGame(opened.api, opened.administrator_token);
    const avatars = `/cloud/games/${own.game_id}`;
    const complete = `${avatars}/avatar-upload/:upload_id/complete`;
    const first = await upload({ prepare: `${avatars}/prepare`, complete }, own.cloud_token, 'first.png');
    const body = { path: 'second.png', content_length: PNG.length };
    await opened.api.ok('POST', `${avatars}/avatar-upload/prepare`, { token: own.cloud_token, body });
    const { custom_avatars } = await opened.api.ok('GET', `${avatars}/avatars`, { token: own.cloud_token });
    expect(custom_avatars).toMatchObject([
      { display_name: 'second.png', complete: false },
      { upload_id: first.upload_id, display_name: 'first.png', complete: true, content_length: PNG.length },
    ]);
    expect(custom_avatars[0].url).toBeUndefined();
    expect((await fetch(custom_avatars[1].url)).status).toBe(200);
  });

  test('of a person or a group is shown to others', async () => {
    const { token, identity_id } = await makeGuest(opened.api, game);
    const mine = '/identity/identities/avatar-upload';
    const own = await upload({ prepare: `${mine}/prepare`, complete: `${mine}/:upload_id/complete` }, token);
    const { identity } = await opened.api.ok('GET', `/identity/identities/${identity_id}/profile`, { token });
    expect(identity.avatar_url).toEndWith(`/media/user-avatar/${own.upload_id}`);
    expect((await fetch(identity.avatar_url)).status).toBe(200);

    const complete = `/group/groups/${game.group_id}/avatar-upload/:upload_id/complete`;
    const prepare = '/group/groups/avatar-upload/prepare';
    const ours = await upload({ prepare, complete }, opened.administrator_token);
    const { group } = await opened.api.ok('GET', `/group/groups/${game.group_id}/summary`, { token });
    expect(group.avatar_url).toEndWith(`/media/team-avatar/${ours.upload_id}`);
    expect((await fetch(group.avatar_url)).status).toBe(200);
    expect((await fetch(`${opened.config.public_url}/media/default-avatar.svg`)).status).toBe(200);
  });
});

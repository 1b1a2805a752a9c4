import { beforeAll, describe, expect, test } from 'bun:test';
import { buildsOf } from '../support/builds.ts';
import { makeGame, type TestGame } from '../support/game.ts';
import { find, join, makeControlledGame } from '../support/game-server.ts';
import { READY_SOURCE } from '../support/lobbies/room.ts';
import { findProcessesOf } from '../support/processes.ts';
import { serversOf, waitForEndEvent } from '../support/servers.ts';
import { outcomeOf, shareService } from '../support/suite.ts';

const U32_MAX = 2 ** 32 - 1;
/** The part of u64 that a JSON number holds exactly. */
const U64_MAX = Number.MAX_SAFE_INTEGER;

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

const post = (end: string, body: object) =>
  muster.api.post(`/cloud/games/${game.game_id}${end}`, game.cloud_token, body);

describe('lobby_count_max and max_players of mm-config validation: u32', () => {
  test.each(['lobby_count_max', 'max_players'])('%s', async (name) => {
    const validate = (value: unknown) =>
      post(`/namespaces/${game.namespace_id}/mm-config/validate`, {
        lobby_count_max: 16,
        max_players: 8,
        [name]: value,
      });
    for (const value of [0, 1, U32_MAX]) expect([value, outcomeOf(await validate(value))]).toEqual([value, '200']);
    for (const value of [-1, U32_MAX + 1, 0.5, '1', null]) {
      expect([value, outcomeOf(await validate(value))]).toEqual([value, '400 API_BAD_BODY']);
    }
  });
});

describe('content_length of builds, CDN files, avatars and uploads: u64', () => {
  const UPLOADS: [string, string, (content_length: unknown) => object][] = [
    [
      'a build',
      '/builds',
      (content_length) => ({
        display_name: 'Build',
        kind: 'archive',
        command: ['./server'],
        image_file: { path: 'server.tar', content_length },
      }),
    ],
    [
      'a CDN file',
      '/cdn/sites',
      (content_length) => ({ display_name: 'Site', files: [{ path: 'index.html', content_length }] }),
    ],
    ['an avatar', '/prepare', (content_length) => ({ path: 'me.png', content_length })],
  ];

  test.each(UPLOADS)('%s', async (_, end, bodyOf) => {
    expect(outcomeOf(await post(end, bodyOf(1)))).toBe('200');
    // The value is parsed and found too large. The specification shows no limit; the reference API has this one.
    const large = await post(end, bodyOf(U64_MAX));
    expect(outcomeOf(large)).toBe('400 UPLOAD_TOO_LARGE');
    for (const value of [-1, 0.5, '1', null, undefined]) {
      expect([value, outcomeOf(await post(end, bodyOf(value)))]).toEqual([value, '400 API_BAD_BODY']);
    }
  });

  test('a number above u32 is returned unchanged', async () => {
    const content_length = U32_MAX + 2;
    const image_file = { path: 'server.tar', content_length };
    const body = { name: 'Large', kind: 'archive', command: ['./server'], image_file, multipart_upload: true };
    const builds = buildsOf(muster, game);
    const { build, image_presigned_requests: parts } = (await builds.prepare(body)).body;
    expect((await builds.get(build)).body.build.content_length).toBe(content_length);
    const last = parts.at(-1);
    expect(last.byte_offset + last.content_length).toBe(content_length);
    expect(last.byte_offset).toBeGreaterThan(2 ** 32 - 2 ** 28);
  });
});

// The range is 26000 to 31999 by default: tests/contract/ports.test.ts and tests/platform/config.test.ts.
test('TCP and UDP ports returned by find, join and create are in the range of the service', async () => {
  const { min, max } = muster.config.servers.server_ports;
  const game_modes = { default: { actions: { create: { enabled: true } } } };
  const ports = { raw: { port: 7_777, protocol: 'tcp' }, voice: { port: 7_778, protocol: 'udp' } };
  const room = await makeControlledGame(muster, { game_modes, ports, source: READY_SOURCE });
  const found = (await find(muster, room)).body;
  const joined = (await join(muster, room, found.lobby.lobby_id)).body;
  const created = await muster.api.post('/matchmaker/lobbies/create', room.public_token, { game_mode: 'default' });
  for (const { ports: given } of [found, joined, created.body]) {
    for (const { port } of [given.raw, given.voice]) {
      expect(port).toBeWithin(min, max + 1);
    }
  }
});

describe('kill_timeout of servers: milliseconds; safe default; overridable on DELETE', () => {
  /** Prints "up", and ignores the request to end. */
  const DEAF = `trap 'echo asked' TERM; echo up; while :; do sleep 0.01; done`;
  const run = async (lifecycle?: object): Promise<string> => {
    const servers = serversOf(muster, game);
    const server_id = await servers.run(DEAF, lifecycle ? { lifecycle } : {});
    await servers.waitForLines(server_id, 1);
    return server_id;
  };

  test('is awaited in milliseconds, and then the server is killed', async () => {
    const servers = serversOf(muster, game);
    const server_id = await run({ kill_timeout: 40_000 });
    await servers.destroy(server_id);
    await servers.waitForLines(server_id, 2);
    muster.clock.advance(35_000);
    // Other servers end in between, so the reconcile loop has seen this one again.
    await waitForEndEvent(muster, await servers.run('exit 0'));
    expect(findProcessesOf(server_id)).not.toEqual([]);
    muster.clock.advance(5_000);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_signal: 'SIGKILL' });
  });

  test('has a safe default', async () => {
    const servers = serversOf(muster, game);
    const server_id = await run();
    expect((await servers.get(server_id)).lifecycle.kill_timeout).toBe(30_000);
    await servers.destroy(server_id);
    await servers.waitForLines(server_id, 2);
    expect(findProcessesOf(server_id)).not.toEqual([]);
    muster.clock.advance(30_000);
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_signal: 'SIGKILL' });
  });

  test('is overridden by that of a DELETE', async () => {
    const server_id = await run({ kill_timeout: 7_000_000 });
    await serversOf(muster, game).destroy(server_id, '?override_kill_timeout=0');
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_signal: 'SIGKILL' });
  });
});

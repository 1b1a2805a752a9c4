import { describe, expect, test } from 'bun:test';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { openExternalDatabase } from '../support/database/database.ts';
import { findSeatInDemo, seeEachOther } from '../support/lobbies/players.ts';
import { enterRoom } from '../support/lobbies/room.ts';
import { makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

describe('the first start', () => {
  test('prints where everything is and has a demo in which two players meet; the next start continues from there', async () => {
    await using home = await makeHome();
    const first = await home.start();
    const token_file = join(home.data_directory, 'administrator-token');
    const greeting = first.output();
    expect(greeting.trimEnd().split('\n').length).toBeLessThan(10);
    for (const part of [first.url, home.data_directory, first.administrator_token, token_file]) {
      expect(greeting).toContain(part);
    }
    expect((await stat(token_file)).mode & 0o777).toBe(0o600);
    for (const page of ['/demo', '/swagger']) {
      expect(greeting).toContain(`${first.url}${page}`);
      expect((await fetch(`${first.url}${page}`)).status).toBe(200);
    }

    const { games } = await first.api.ok('GET', '/cloud/games', { token: first.administrator_token });
    expect(games.map(({ name_id }: { name_id: string }) => name_id)).toEqual(['demo']);
    const path = `/cloud/games/${games[0].game_id}`;
    const { game } = await first.api.ok('GET', path, { token: first.administrator_token });
    expect(game.namespaces.map(({ name_id }: { name_id: string }) => name_id).sort()).toEqual(['prod', 'staging']);
    expect(game.versions.map(({ display_name }: { display_name: string }) => display_name)).toContain('Demo room');
    const one = await enterRoom(await findSeatInDemo(first.url));
    const other = await enterRoom(await findSeatInDemo(first.url));
    expect(other.lobby_id).toBe(one.lobby_id);
    // Both dots are visible before any player moves.
    await waitFor(() => Object.keys(one.positions).length === 2, 'the first player to see both');
    const [position, other_position] = Object.values(one.positions);
    expect(other_position).not.toEqual(position);
    await seeEachOther(one, other);

    // Ctrl-C ends everything that was started: the program, its PostgreSQL and its game servers.
    expect(await first.stop('SIGINT')).toBe(0);
    await Promise.all([one.closed, other.closed]);
    expect(home.processes()).toEqual([]);

    const second = await home.start();
    // Only the first start prints the token. Later starts renew it in its file, and earlier tokens stay valid.
    expect(second.output()).not.toContain('usr.');
    expect(second.output()).toContain(token_file);
    for (const token of [first.administrator_token, second.administrator_token]) {
      const again = await second.api.ok('GET', path, { token });
      expect(again.game).toEqual(game);
    }
    const { games: games_after } = await second.api.ok('GET', '/cloud/games', { token: second.administrator_token });
    expect(games_after.map(({ game_id }: { game_id: string }) => game_id)).toEqual([game.game_id]);
  }, 300_000);

  test('prints no secret if the settings say so', async () => {
    await using database = await openExternalDatabase();
    await using home = await makeHome({ DATABASE_URL: database.url, MUSTER_DEMO: 'off', MUSTER_PRINT_SECRETS: 'off' });
    const { output, url } = await home.start();
    expect(output()).toContain(`hub, with the token  ${url}\n`);
    expect(output()).toContain(join(home.data_directory, 'administrator-token'));
    expect(output()).not.toMatch(/usr\.|#login=/);
  }, 300_000);

  test('has no demo if the settings say so; a second program on the same directory or port ends with one sentence', async () => {
    await using database = await openExternalDatabase();
    const settings = { DATABASE_URL: database.url, MUSTER_DEMO: 'off' };
    await using home = await makeHome(settings);
    const { api, url, administrator_token, output } = await home.start();
    expect(output()).not.toContain('/demo');
    expect((await fetch(`${url}/demo`)).status).toBe(404);
    expect((await api.ok('GET', '/cloud/games', { token: administrator_token })).games).toEqual([]);

    expect(await home.run()).toEqual({
      exit_code: 1,
      output: `The data directory ${home.data_directory} is in use by another Muster: stop that one, or set MUSTER_DATA to another directory.\n`,
    });
    const { port } = new URL(url);
    await using other_database = await openExternalDatabase();
    const other_settings = { ...settings, DATABASE_URL: other_database.url, MUSTER_PORT: port };
    await using other = await makeHome(other_settings);
    expect(await other.run()).toEqual({
      exit_code: 1,
      output: `Port ${port} is taken by another program: stop that one, or set MUSTER_PORT to a free port.\n`,
    });
    expect(other.processes()).toEqual([]);
  }, 300_000);
});

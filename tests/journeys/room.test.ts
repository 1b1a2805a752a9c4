import { afterAll, describe, expect, test } from 'bun:test';
import { openExternalDatabase } from '../support/database/database.ts';
import { deploy, makeGame, uploadScript } from '../support/game.ts';
import { TEST_DATABASE_URL } from '../support/keeper.ts';
import { seeEachOther } from '../support/lobbies/players.ts';
import { CLOSABLE_ROOM_SOURCE, enterRoom } from '../support/lobbies/room.ts';
import { findProcessesOf } from '../support/processes.ts';
import { commandOf, EXECUTABLE, makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

/** What CI has; on a developer's machine all of it is optional. */
const MISSING = [
  ...(EXECUTABLE === undefined ? ['the executable (MUSTER_TEST_EXECUTABLE=dist/muster)'] : []),
  ...(TEST_DATABASE_URL === undefined ? ['a PostgreSQL of another maker (MUSTER_TEST_DATABASE_URL=postgres://…)'] : []),
];

const CASES = [
  { program: 'source', database: 'embedded' },
  { program: 'source', database: 'DATABASE_URL' },
  { program: 'executable', database: 'embedded' },
  { program: 'executable', database: 'DATABASE_URL' },
] as const;

const isMissing = ({ program }: (typeof CASES)[number]): boolean =>
  program === 'executable' && EXECUTABLE === undefined;

afterAll(() => {
  if (MISSING.length > 0) console.log(`Not tried, because it is not here: ${MISSING.join(', ')}.`);
});

describe('room: from an empty database to players in a room, and to its end', () => {
  for (const one of CASES) {
    test.skipIf(isMissing(one))(
      `${one.program}, ${one.database}`,
      async () => {
        await using database = one.database === 'embedded' ? undefined : await openExternalDatabase();
        await using home = await makeHome(database ? { DATABASE_URL: database.url } : {}, {
          has_prepared_database: !database,
        });
        const { api, administrator_token } = await home.start({ command: commandOf(one.program) });

        // A developer creates a game, uploads its server and deploys it to prod.
        const game = await makeGame(api, administrator_token);
        const build_id = await uploadScript(api, game, CLOSABLE_ROOM_SOURCE);
        await deploy(api, game, {
          game_modes: { default: {} },
          max_players: 2,
          docker: { image_id: build_id, ports: { game: { port: 80, protocol: 'http' } } },
        });
        const find = () =>
          api.ok('POST', '/matchmaker/lobbies/find', { token: game.public_token, body: { game_modes: ['default'] } });

        // Two players in one room see each other move. A third one gets a room of its own.
        const first = await enterRoom(await find());
        const second = await enterRoom(await find());
        expect(second.lobby_id).toBe(first.lobby_id);
        await seeEachOther(first, second);
        const third = await enterRoom(await find());
        expect(third.lobby_id).not.toBe(first.lobby_id);

        // A closed lobby is not found, although it has a free seat.
        const servers = `/games/${game.game_id}/environments/${game.namespace_id}/servers`;
        const { servers: running } = await api.ok('GET', servers, { token: game.cloud_token });
        expect(running).toHaveLength(2);
        const { id: server_id } = running.find(
          ({ tags }: { tags: Record<string, string> }) => tags.lobby_id === first.lobby_id,
        );
        third.socket.send('close');
        await waitFor(() => third.is_closed, 'the lobby to be closed');
        const fourth = await enterRoom(await find());
        expect([first.lobby_id, third.lobby_id]).not.toContain(fourth.lobby_id);

        // After its players left, the room and its processes end, and its log stays readable.
        expect(findProcessesOf(server_id)).not.toEqual([]);
        await first.close();
        await second.close();
        await waitFor(() => findProcessesOf(server_id).length === 0, 'the processes of the server to end');
        const { server } = await api.ok('GET', `${servers}/${server_id}`, { token: game.cloud_token });
        expect(server).toMatchObject({ destroyed_at: expect.any(Number), tags: { lobby_id: first.lobby_id } });
        const text = await waitFor(async () => {
          const path = `${servers}/${server_id}/logs?stream=std_out`;
          const { lines } = await api.ok('GET', path, { token: game.cloud_token });
          const printed: string = lines.map((line: string) => atob(line)).join('\n');
          return printed.match(/has left/g)?.length === 2 ? printed : undefined;
        }, 'the whole log of the server');
        expect(text).toContain(`lobby ${first.lobby_id} is ready`);
        expect(text.match(/has come/g)).toHaveLength(2);
        await third.close();
        await fourth.close();
      },
      300_000,
    );
  }
});

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { $ } from 'bun';
import { makeRoomGame, READY_SOURCE } from '../support/lobbies/room.ts';
import { openTestService } from '../support/service.ts';

const HAS_MONO = Bun.which('mono') !== null && Bun.which('mcs') !== null;
/** Carries the Newtonsoft.Json that generated clients use. */
const GENERATOR = join(dirname(Bun.resolveSync('nswag/package.json', import.meta.dir)), 'bin/binaries/Win');
const GENERATED = 'client.cs';
const REFERENCES = ['System.Net.Http', 'System.Runtime.Serialization', 'System.ComponentModel.DataAnnotations'];

/** A game's back end: finds a lobby, lists regions and servers, and reads a refusal. */
const PROGRAM = `
using System;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Threading.Tasks;
using Muster;

static class Program {
  static void Main(string[] args) { Play(args).GetAwaiter().GetResult(); }

  static async Task Play(string[] args) {
    var player = Open(args[0], args[1]);
    var found = await player.FindLobbyAsync(new FindLobbyRequest { Game_modes = new[] { "default" } });
    JoinPort port = found.Ports["game"];
    Console.WriteLine("found " + found.Lobby.Lobby_id + " at " + port.Host);
    ListRegionsResponse regions = await player.ListRegionsAsync(null, null);
    Console.WriteLine("regions " + string.Join(",", regions.Regions.Select((Region region) => region.Region_id)));
    try {
      await player.FindLobbyAsync(new FindLobbyRequest { Game_modes = new[] { "none" } });
    } catch (ApiException<Error> refused) {
      Console.WriteLine("refused " + refused.StatusCode + " " + refused.Result.Code);
    }
    var developer = Open(args[0], args[2]);
    var listed = await developer.ListServersAsync(new Guid(args[3]), new Guid(args[4]), null, null, null, null);
    foreach (Server server in listed.Servers) Console.WriteLine("server " + server.Network.Ports["game"].Protocol);
    Game game = (await developer.GetGameAsync(new Guid(args[3]), null)).Game;
    Namespace space = (await developer.GetNamespaceAsync(new Guid(args[3]), new Guid(args[4]))).Namespace;
    Muster.Version version = (await developer.GetVersionAsync(new Guid(args[3]), space.Version_id)).Version;
    Console.WriteLine(game.Display_name + " has " + version.Config.Matchmaker.Game_modes.Count + " game mode");
  }

  static MusterClient Open(string address, string token) {
    var http = new HttpClient();
    http.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", token);
    return new MusterClient(address, http);
  }
}
`;

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'muster-csharp-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

afterAll(() => {
  if (!HAS_MONO) console.log('Not tried, because it is not here: a C# compiler (mono-devel).');
});

test.skipIf(!HAS_MONO)('a C# client generated from the API document compiles, and plays', async () => {
  await using muster = await openTestService();
  const document = join(directory, 'openapi.json');
  await Bun.write(document, JSON.stringify(await muster.api.ok('GET', '/openapi.json')));
  await Bun.write(join(directory, 'program.cs'), PROGRAM);
  const generate = [
    'openapi2csclient',
    `/input:${document}`,
    '/namespace:Muster',
    '/classname:MusterClient',
    '/generateOptionalPropertiesAsNullable:true',
  ];
  await $`mono ${GENERATOR}/NSwag.exe ${generate} /output:${GENERATED}`.cwd(directory).quiet();

  // The generator numbers shapes without a name.
  const generated = await Bun.file(join(directory, GENERATED)).text();
  const types = [...generated.matchAll(/public (?:partial class|enum) (\w+)/g)].map(([, name = '']) => name);
  expect(types.filter((name) => /\d$|^Anonymous/.test(name))).toEqual([]);

  const references = [...REFERENCES, `${GENERATOR}/Newtonsoft.Json.dll`].map((name) => `-r:${name}`);
  await $`mcs -warn:0 -out:program.exe ${references} ${GENERATED} program.cs`.cwd(directory).quiet();

  const game = await makeRoomGame(muster, { source: READY_SOURCE });
  const { game_id, namespace_id, public_token, cloud_token } = game;
  const args = [muster.config.public_url, public_token, cloud_token, game_id, namespace_id];
  const output = await $`mono program.exe ${args}`
    .cwd(directory)
    .env({ ...process.env, MONO_PATH: GENERATOR })
    .text();
  expect(output.trim().split('\n')).toEqual([
    expect.stringMatching(/^found [0-9a-f-]{36} at 127\.0\.0\.1:\d+$/),
    'regions local',
    'refused 404 MATCHMAKER_GAME_MODE_NOT_FOUND',
    'server Http',
    'Test game has 1 game mode',
  ]);
});

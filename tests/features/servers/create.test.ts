import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame, uploadBuild } from '../../support/game.ts';
import { serversOf, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { packTar } from '../../support/tar.ts';

const PRINT = 'for v in "$@"; do echo "<$v>"; done; env; exec sleep 600';

const muster = shareService();
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
let build: string;
let body: Awaited<ReturnType<typeof servers.bodyOf>>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
  build = await uploadShell(muster.api, game, PRINT);
  body = await servers.bodyOf(build);
});

const many = <Value>(count: number, name: (index: number) => string, value: Value) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [name(index), value]));
const ports = (value: object) => ({ network: { ports: value } });
const TCP = { protocol: 'tcp' };

describe('creating a server is refused', () => {
  // How the request differs from a valid one, and the path of the error.
  const SHAPES: [string, object, string][] = [
    ['without a datacenter', { datacenter: undefined }, 'datacenter'],
    ['in a datacenter by name', { datacenter: 'local' }, 'datacenter'],
    ['without tags', { tags: undefined }, 'tags'],
    ['with nine tags', { tags: many(9, (index) => `tag${index}`, 'v') }, 'tags'],
    ['with a tag with an empty name', { tags: { '': 'v' } }, 'tags.'],
    ['with a tag with a long name', { tags: { ['t'.repeat(33)]: 'v' } }, `tags.${'t'.repeat(33)}`],
    ['with an empty tag', { tags: { mode: '' } }, 'tags.mode'],
    ['with a long tag', { tags: { mode: 'v'.repeat(1_025) } }, 'tags.mode'],
    ['with a tag with a name of 33 bytes', { tags: { [`x${'ä'.repeat(16)}`]: 'v' } }, `tags.x${'ä'.repeat(16)}`],
    ['with a tag of 1025 bytes', { tags: { mode: `x${'ä'.repeat(512)}` } }, 'tags.mode'],
    ['with a tag that is no string', { tags: { mode: 1 } }, 'tags.mode'],
    ['without a build', { runtime: {} }, 'runtime.build'],
    ['with 65 arguments', { runtime: { arguments: Array(65).fill('a') } }, 'runtime.arguments'],
    ['with an empty argument', { runtime: { arguments: ['a', ''] } }, 'runtime.arguments.1'],
    ['with a long argument', { runtime: { arguments: ['a'.repeat(257)] } }, 'runtime.arguments.0'],
    ['with 65 variables', { runtime: { environment: many(65, (index) => `V${index}`, 'v') } }, 'runtime.environment'],
    ['with a long variable', { runtime: { environment: { A: 'v'.repeat(1_025) } } }, 'runtime.environment.A'],
    ...['1A', 'A-B', 'SERVICE_TOKEN', 'RIVET_TOKEN', 'PORT_game', 'MUSTER_SERVER_ID', 'BUN_BE_BUN'].map(
      (name): [string, object, string] => [
        `with a variable ${name}`,
        { runtime: { environment: { [name]: 'v' } } },
        `runtime.environment.${name}`,
      ],
    ),
    ['without ports', { network: {} }, 'network.ports'],
    ['with nine ports', ports(many(9, (index) => `port${index}`, TCP)), 'network.ports'],
    ['with a port with a long name', ports({ ['p'.repeat(17)]: TCP }), `network.ports.${'p'.repeat(17)}`],
    ['with a port whose name begins with a dash', ports({ '-p': TCP }), 'network.ports.-p'],
    ['with a port without a protocol', ports({ game: {} }), 'network.ports.game.protocol'],
    ['with a port with an unknown protocol', ports({ game: { protocol: 'quic' } }), 'network.ports.game.protocol'],
    ['with port 0', ports({ game: { ...TCP, internal_port: 0 } }), 'network.ports.game.internal_port'],
    ['with port 65536', ports({ game: { ...TCP, internal_port: 65_536 } }), 'network.ports.game.internal_port'],
    ['with a routing that is a string', ports({ game: { ...TCP, routing: 'host' } }), 'network.ports.game.routing'],
    ['on an unknown kind of network', { network: { mode: 'none', ports: {} } }, 'network.mode'],
    ['without resources', { resources: undefined }, 'resources'],
    ['with zero cpu', { resources: { cpu: 0, memory: 64 } }, 'resources.cpu'],
    ['with less than the minimum of cpu', { resources: { cpu: 0.5, memory: 64 } }, 'resources.cpu'],
    ['without memory', { resources: { cpu: 100, memory: 0 } }, 'resources.memory'],
    ['with a negative kill timeout', { lifecycle: { kill_timeout: -1 } }, 'lifecycle.kill_timeout'],
    ['with a kill timeout above two hours', { lifecycle: { kill_timeout: 7_200_000 } }, 'lifecycle.kill_timeout'],
  ];
  test.each(SHAPES)('%s', async (_, change, path) => {
    const runtime =
      'runtime' in change && path !== 'runtime.build' ? { ...body.runtime, ...Object(change.runtime) } : undefined;
    const answer = await servers.create({ ...body, ...change, ...(runtime ? { runtime } : {}) });
    expect(outcomeOf(answer)).toBe('400 API_BAD_BODY');
    expect(answer.body.message).toContain(`"${path}"`);
    expect(answer.body.metadata.errors[0].path.join('.')).toBe(path);
  });

  const TEXTS = [
    ['an argument', (text: string) => ({ runtime: { build, arguments: [text] } })],
    ['a variable', (text: string) => ({ runtime: { build, environment: { A: text } } })],
    ['a tag', (text: string) => ({ tags: { a: text } })],
  ] as const;
  test.each(TEXTS)('with a character in %s that the database cannot store', async (_, change) => {
    for (const text of ['a\0b', '\ud800', '\udfff']) {
      expect(outcomeOf(await servers.create({ ...body, ...change(text) }))).toBe('400 API_BAD_BODY');
    }
  });

  const REFUSALS: [string, () => Promise<object> | object, string][] = [
    ['in a missing datacenter', () => ({ datacenter: crypto.randomUUID() }), '404 CLUSTER_DATACENTER_NOT_FOUND'],
    ['of a missing build', () => ({ runtime: { build: crypto.randomUUID() } }), '404 BUILDS_BUILD_NOT_FOUND'],
    [
      'of a build of another game',
      async () => {
        const other = await makeGame(muster.api, muster.administrator_token);
        return { runtime: { build: await uploadShell(muster.api, other, PRINT) } };
      },
      '404 BUILDS_BUILD_NOT_FOUND',
    ],
    [
      'of a build of another environment of the game',
      async () => ({
        runtime: { build: await uploadShell(muster.api, { ...game, namespace_id: game.staging_id }, PRINT) },
      }),
      '404 BUILDS_BUILD_NOT_FOUND',
    ],
    [
      'of a build without its file',
      async () => {
        const path = `/games/${game.game_id}/environments/${game.namespace_id}/builds/prepare`;
        const wanted = {
          name: 'Late',
          kind: 'archive',
          command: ['./x'],
          image_file: { path: 'x', content_length: 5 },
        };
        const prepared = await muster.api.ok('POST', path, { token: game.cloud_token, body: wanted });
        return { runtime: { build: prepared.build } };
      },
      '400 BUILDS_BUILD_NOT_COMPLETE',
    ],
    ['larger than any tier', () => ({ resources: { cpu: 4_001, memory: 64 } }), '400 SERVERS_SERVER_FAILED_TO_CREATE'],
    [
      'with two routings',
      () => ports({ game: { ...TCP, routing: { host: {}, game_guard: {} } } }),
      '400 SERVERS_MUST_SPECIFY_ROUTING_TYPE',
    ],
    [
      'with http routed by host',
      () => ports({ game: { protocol: 'http', routing: { host: {} } } }),
      '400 SERVERS_UNSUPPORTED_HOST_PROTOCOL',
    ],
  ];
  test.each(REFUSALS)('%s', async (_, change, outcome) => {
    expect(outcomeOf(await servers.create({ ...body, ...(await change()) }))).toBe(outcome);
  });

  test('and leaves no server behind', async () => {
    const { servers: made } = await muster.api.ok('GET', `${servers.path}?include_destroyed=true`, {
      token: game.cloud_token,
    });
    expect(made).toEqual([]);
  });
});

describe('a server', () => {
  test('is answered at once as requested, with defaults filled in, and starts', async () => {
    const began_ms = muster.clock.now().getTime();
    const answer = await servers.create({ ...body, anything_else: 1 });
    const { id, created_at, ...server } = answer.body.server;
    expect(outcomeOf(answer)).toBe('200');
    expect(server).toEqual({
      environment: game.namespace_id,
      datacenter: body.datacenter,
      tags: {},
      runtime: { build, arguments: [], environment: {} },
      network: { mode: 'bridge', ports: {} },
      resources: { cpu: 100, memory: 64 },
      lifecycle: { kill_timeout: 30_000 },
    });
    expect(created_at).toBeWithin(began_ms, muster.clock.now().getTime() + 1);
    const started = await servers.waitForStart(id);
    expect(started).toEqual({ id, created_at, ...server, started_at: started.started_at });
    expect(started.started_at).toBeGreaterThanOrEqual(created_at);
  });

  test('at all limits gets everything that was requested', async () => {
    const environment = { ...many(63, (index) => `V${index}`, 'v'.repeat(1_024)), ['_'.repeat(256)]: 'ünïcode = "\n' };
    const args = Array.from({ length: 64 }, (_, index) => `${index}`.padEnd(256, '$'));
    const labels = { [`g${'-'.repeat(14)}1`]: TCP, ...many(7, (index) => `p${index}`, { protocol: 'udp' }) };
    const wanted = {
      datacenter: body.datacenter.toUpperCase(),
      tags: many(8, (index) => `${index}ü`.padEnd(31, '_'), 'v'.repeat(1_024)),
      runtime: { build: build.toUpperCase(), arguments: args, environment },
      network: { mode: 'host', ports: labels },
      resources: { cpu: 4_000, memory: 7_352 },
      lifecycle: { kill_timeout: 7_199_999 },
    };
    const answer = await servers.create(wanted);
    expect(outcomeOf(answer)).toBe('200');
    const started = await servers.waitForStart(answer.body.server.id);
    expect(started).toMatchObject({
      ...wanted,
      datacenter: body.datacenter,
      runtime: { ...wanted.runtime, build },
      network: { mode: 'host' },
    });
    for (const [label, { protocol }] of Object.entries(labels)) {
      const port = started.network.ports[label];
      expect(port).toEqual({
        protocol,
        internal_port: port.public_port,
        public_hostname: '127.0.0.1',
        public_port: port.public_port,
        routing: { game_guard: {} },
      });
    }
    const printed = await servers.waitForLines(started.id, 64 + 64 + 2 * 8);
    expect(printed.slice(0, 64)).toEqual(args.map((word) => `<${word}>`));
    expect(printed).toContain(`V62=${'v'.repeat(1_024)}`);
    expect(printed).toContain(`${'_'.repeat(256)}=ünïcode = "`);
    expect(printed).toContain(`PORT_g${'_'.repeat(14)}1=${started.network.ports[`g${'-'.repeat(14)}1`].public_port}`);
    expect(printed).toContain(`PORT_P6=${started.network.ports.p6.public_port}`);
  });

  test("has the service's address, under both names, and its memory limit in its environment, but no token", async () => {
    const server_id = await servers.run('env | sort; exit 0', { runtime: { environment: { MODE: 'fast' } } });
    await waitForEndEvent(muster, server_id);
    const names = (await servers.linesOf(server_id)).map((line) => line.split('=')[0]);
    const expected_names = [
      'HOME',
      'MODE',
      'MUSTER_MEMORY_MB',
      'MUSTER_SERVER_ID',
      'PATH',
      'PWD',
      'RIVET_API_ENDPOINT',
      'SERVICE_API_ENDPOINT',
      'TMPDIR',
    ];
    expect(names.filter((name) => name !== 'OLDPWD')).toEqual(expected_names);
    expect(await servers.linesOf(server_id)).toContain(`SERVICE_API_ENDPOINT=${muster.config.local_url}`);
    expect(await servers.linesOf(server_id)).toContain('MUSTER_MEMORY_MB=64');
  });

  test('without a program ends with the error of the system in its log', async () => {
    const content = await packTar([{ name: 'readme' }]);
    const empty = await uploadBuild(muster.api, game, {
      kind: 'archive',
      path: 'a.tar',
      content,
      command: ['no-such-program'],
    });
    const server_id = (await servers.create({ ...body, runtime: { build: empty } })).body.server.id;
    expect(await waitForEndEvent(muster, server_id)).toMatchObject({
      exit_code: 127,
      exit_signal: null,
      failure: null,
    });
    const [line] = await servers.linesOf(server_id, 'std_err');
    expect(line).toMatch(/no-such-program: (command )?not found/);
  });
});

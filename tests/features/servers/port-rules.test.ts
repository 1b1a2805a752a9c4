import { describe, expect, test } from 'bun:test';
import { checkServer, serviceVariables } from '../../../src/features/servers/rules.ts';
import {
  assignPorts,
  countPorts,
  portsAt,
  portsInside,
  portVariables,
} from '../../../src/features/servers/server-port-rules.ts';
import type { CreateServer } from '../../../src/features/servers/wire.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { refusalOf } from '../../support/refusal.ts';

const ID = '00000000-0000-4000-8000-000000000000';

type Ports = CreateServer['network']['ports'];

function serverWith(
  ports: Ports,
  more: { mode?: 'bridge' | 'host'; cpu?: number; memory?: number } = {},
): CreateServer {
  const { mode, cpu = 1_000, memory = 512 } = more;
  return {
    datacenter: ID,
    tags: {},
    runtime: { build: ID },
    network: { ...(mode ? { mode } : {}), ports },
    resources: { cpu, memory },
  };
}

describe('a server is refused before it is created', () => {
  const tier = (found: { cpu?: number; memory?: number }) => serverWith({}, found);
  const TOO_LARGE =
    'The server cannot be created: its resources exceed the largest tier, cpu 4000 and memory 7352; request less.';
  const REFUSALS = [
    ['with more cores than any tier', tier({ cpu: 4_001 }), 'SERVERS_SERVER_FAILED_TO_CREATE', TOO_LARGE],
    ['with more memory than any tier', tier({ memory: 7_353 }), 'SERVERS_SERVER_FAILED_TO_CREATE', TOO_LARGE],
    [
      'with two routings',
      serverWith({ game: { protocol: 'tcp', routing: { host: {}, game_guard: {} } } }),
      'SERVERS_MUST_SPECIFY_ROUTING_TYPE',
      'The routing of port "game" must have exactly one of game_guard and host.',
    ],
    [
      'with an empty routing',
      serverWith({ first: { protocol: 'tcp' }, game: { protocol: 'tcp', routing: {} } }),
      'SERVERS_MUST_SPECIFY_ROUTING_TYPE',
      'The routing of port "game" must have exactly one of game_guard and host.',
    ],
    [
      'with an internal port on the host network',
      serverWith({ game: { protocol: 'udp', internal_port: 80, routing: { host: {} } } }, { mode: 'host' }),
      'SERVERS_SERVER_FAILED_TO_CREATE',
      'The server cannot be created: the port "game" has an internal_port, which the network mode host does not support; remove it.',
    ],
    [
      'with two ports that would have one variable',
      serverWith({ 'a-b': { protocol: 'udp' }, game: { protocol: 'udp' }, a_b: { protocol: 'udp' } }),
      'SERVERS_SERVER_FAILED_TO_CREATE',
      'The server cannot be created: the ports "a-b" and "a_b" share the variable PORT_a_b; rename one of them.',
    ],
  ] as const;

  test.each(REFUSALS)('%s', (_, server, code, message) => {
    expect(refusalOf(ServiceError, () => checkServer(server))).toMatchObject({ code, message });
  });

  test.each(['http', 'https', 'tcp_tls'] as const)(
    'with %s and host routing, which supports only tcp and udp',
    (protocol) => {
      const server = serverWith({ game: { protocol, routing: { host: {} } } });
      expect(refusalOf(ServiceError, () => checkServer(server))).toMatchObject({
        code: 'SERVERS_UNSUPPORTED_HOST_PROTOCOL',
        message:
          'The port "game" uses host routing, which supports only tcp and udp. Change its protocol or its routing.',
      });
    },
  );

  test('but not with the resources of the largest tier', () => {
    expect(checkServer(serverWith({}, { cpu: 4_000, memory: 7_352, mode: 'host' }))).toEqual({});
  });
});

describe('the ports of a server', () => {
  test('are routed through the gateway by default', () => {
    const ports = checkServer(
      serverWith({
        web: { protocol: 'https' },
        guarded: { protocol: 'udp', routing: { game_guard: {} }, internal_port: 7_777 },
        own: { protocol: 'tcp', routing: { host: {} } },
      }),
    );
    expect(ports).toEqual({
      web: { protocol: 'https', routing: 'game_guard' },
      guarded: { protocol: 'udp', routing: 'game_guard', internal_port: 7_777 },
      own: { protocol: 'tcp', routing: 'host' },
    });
  });

  const SERVER = '0197a4a6-6f2c-7000-8000-0123456789ab';
  const RANGE = { protocol: 'udp', routing: 'host', port_range: { min: 7_000, max: 7_010 } } as const;
  const WEB = { protocol: 'http', routing: 'game_guard', internal_port: 80 } as const;
  const GAME = { protocol: 'udp', routing: 'game_guard' } as const;
  const NONE = new Set<never>();

  test('each get a number on the machine, and a range keeps its numbers', () => {
    const ports = { web: WEB, range: RANGE, game: GAME };
    expect(countPorts(ports, NONE)).toBe(2);
    expect(portsAt({ server_id: SERVER, host: 'play.example' }, assignPorts(ports, [26_001, 26_000], NONE))).toEqual({
      web: {
        ...WEB,
        wanted_port: 80,
        internal_port: 26_001,
        public_hostname: 'play.example',
        public_port: 26_001,
        gateway_name: `${SERVER}-web`,
      },
      range: { ...RANGE, public_hostname: 'play.example' },
      game: { ...GAME, internal_port: 26_000, public_hostname: 'play.example', public_port: 26_000 },
    });
    expect(() => assignPorts(ports, [26_001], NONE)).toThrow('broken invariant');
  });

  test('that Muster relays get a second number, unless they are routed to the host', () => {
    const ports = {
      game: { protocol: 'tcp_tls', routing: 'game_guard' },
      own: { protocol: 'tcp', routing: 'host' },
    } as const;
    const relayed = new Set(['tcp_tls', 'tcp'] as const);
    expect(countPorts(ports, relayed)).toBe(3);
    expect(assignPorts(ports, [26_000, 26_001, 26_002], relayed)).toEqual({
      game: { ...ports.game, internal_port: 26_000, public_port: 26_000, relay_port: 26_001 },
      own: { ...ports.own, internal_port: 26_002, public_port: 26_002 },
    });
    expect(() => assignPorts(ports, [26_000], relayed)).toThrow('broken invariant');
  });

  test('are in variables, in every spelling of the reference API', () => {
    expect(portVariables({ 'my-game_2': { ...GAME, internal_port: 26_000 }, 'voice-chat': RANGE })).toEqual({
      PORT_my_game_2: '26000',
      PORT_MY_GAME_2: '26000',
      PORT_RANGE_MIN_voice_chat: '7000',
      PORT_RANGE_MAX_voice_chat: '7010',
      PORT_RANGE_voice_chat_MIN: '7000',
      PORT_RANGE_voice_chat_MAX: '7010',
    });
  });

  test('that differ in case only have variables of their own', () => {
    const [lower, upper] = [
      { ...GAME, internal_port: 26_000 },
      { ...GAME, internal_port: 26_001 },
    ];
    for (const ports of [
      { game: lower, GAME: upper },
      { GAME: upper, game: lower },
    ]) {
      expect(portVariables(ports)).toEqual({ PORT_game: '26000', PORT_GAME: '26001' });
    }
  });
});

test('service variables: each has the name of Muster and that of the reference API', () => {
  expect(serviceVariables({ TOKEN: 'a', LOBBY_ID: 'b' })).toEqual({
    SERVICE_TOKEN: 'a',
    RIVET_TOKEN: 'a',
    SERVICE_LOBBY_ID: 'b',
    RIVET_LOBBY_ID: 'b',
  });
  expect(serviceVariables({})).toEqual({});
});

test('ports: a server with a network of its own listens on those that its developer asked for', () => {
  const ports = assignPorts(
    {
      page: { protocol: 'tcp', routing: 'game_guard', internal_port: 80 },
      game: { protocol: 'udp', routing: 'game_guard' },
      range: { protocol: 'udp', routing: 'host', port_range: { min: 5_000, max: 5_010 } },
    },
    [26_000, 26_001],
    new Set(),
  );
  expect(portsInside(ports)).toEqual({
    page: { protocol: 'tcp', routing: 'game_guard', wanted_port: 80, internal_port: 80, public_port: 26_000 },
    game: { protocol: 'udp', routing: 'game_guard', internal_port: 26_001, public_port: 26_001 },
    range: { protocol: 'udp', routing: 'host', port_range: { min: 5_000, max: 5_010 } },
  });
});

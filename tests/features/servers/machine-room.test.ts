import { describe, expect, test } from 'bun:test';
import {
  FOREIGN_PORTS_KNOWN_FOR_MS,
  findLack,
  type MachineLimits,
  MachineRoom,
  portsAssignedTo,
} from '../../../src/features/servers/placement/machine-room.ts';
import { numbersIn, RANGE_PORTS_MAX } from '../../../src/features/servers/server-port-rules.ts';
import type { Room, ServerPort } from '../../../src/features/servers/tables.ts';

const INFINITE = Number.POSITIVE_INFINITY;
/** Ten ports, two cores and 1 GiB. */
const LIMITS: MachineLimits = {
  server_ports: { min: 20_000, max: 20_009 },
  resources_max: { cpu: 2_000, memory: 1_024 },
  relayed: new Set(['udp']),
};
const WHOLE: Room = { ports: 10, cpu: 2_000, memory: 1_024 };
const NONE: ReadonlySet<number> = new Set();

const listen = (protocol: ServerPort['protocol']): ServerPort => ({ protocol, routing: 'game_guard' });
const rangeOf = (min: number, max: number): ServerPort => ({
  protocol: 'udp',
  routing: 'host',
  port_range: { min, max },
});
const serverWith = (...ports: ServerPort[]) => ({
  ports: Object.fromEntries(ports.map((port, index) => [`port-${index}`, port])),
  cpu: 500,
  memory: 256,
});

describe('the room of a machine', () => {
  test.each<[string, Partial<MachineLimits>, Room]>([
    ['its ports and resources', {}, WHOLE],
    [
      'infinite without a limit of resources',
      { resources_max: undefined },
      { ports: 10, cpu: INFINITE, memory: INFINITE },
    ],
  ])('is %s', (_, limits, whole) => {
    const room = new MachineRoom({ ...LIMITS, ...limits });
    expect(room.whole).toEqual(whole);
    expect(room.beside([], NONE)).toEqual(whole);
  });

  test.each<[string, number, number[], Room]>([
    ['ports that are unavailable', 0, [20_000, 20_009], { ...WHOLE, ports: 8 }],
    ['no ports that are not for servers', 0, [19_999, 20_010], WHOLE],
    ['what servers may use', 3, [], { ports: 10, cpu: 500, memory: 256 }],
    ['more than it has, if its servers may use more', 5, [], { ports: 10, cpu: -500, memory: -256 }],
  ])('is without %s', (_, count, unavailable_ports, left) => {
    const running = Array.from({ length: count }, () => serverWith(listen('udp')));
    expect(new MachineRoom(LIMITS).beside(running, new Set(unavailable_ports))).toEqual(left);
  });

  test('is without the ports of other programs, for a while, and never less than none', () => {
    let now_ms = 0;
    const room = new MachineRoom(LIMITS, () => now_ms);
    const portsLeft = () => room.beside([], NONE).ports;
    room.noteForeignPorts(3);
    expect(portsLeft()).toBe(7);
    now_ms += FOREIGN_PORTS_KNOWN_FOR_MS - 1;
    room.noteForeignPorts(2);
    expect(portsLeft()).toBe(5);
    room.noteForeignPorts(100);
    expect(portsLeft()).toBe(0);
    now_ms += FOREIGN_PORTS_KNOWN_FOR_MS;
    expect(portsLeft()).toBe(10);
    // What it knew before is over.
    room.noteForeignPorts(1);
    expect(portsLeft()).toBe(9);
  });
});

describe('a server needs', () => {
  const ASSIGNED = new Set([20_005]);
  const too_long = rangeOf(21_000, 21_000 + RANGE_PORTS_MAX);
  test.each<[string, ServerPort[], number, Partial<MachineLimits>]>([
    ['no port', [], 0, {}],
    ['a port for each of its own', [listen('tcp'), listen('tcp')], 2, {}],
    ['two for a port with a relay', [listen('udp'), listen('tcp')], 3, {}],
    ['none for a range', [rangeOf(20_000, 20_004), listen('tcp')], 1, {}],
    ['infinitely many if its range has the port of another server', [rangeOf(20_000, 20_005)], INFINITE, {}],
    [
      'infinitely many if its ranges are too long',
      [too_long],
      INFINITE,
      { server_ports: { min: 20_000, max: 29_999 } },
    ],
    ['none for a range that is not for servers', [too_long], 0, { range_ports: { min: 1, max: 0 } }],
  ])('%s', (_, ports, needed, limits) => {
    const room = new MachineRoom({ ...LIMITS, ...limits });
    expect(room.needsOf(serverWith(...ports), ASSIGNED)).toEqual({ ports: needed, cpu: 500, memory: 256 });
  });
});

test.each<[string, Partial<Room>, ReturnType<typeof findLack>]>([
  ['nothing if it fits exactly', {}, undefined],
  ['ports', { ports: 11 }, 'no_ports'],
  ['processor time', { cpu: 2_001 }, 'no_resources'],
  ['memory', { memory: 1_025 }, 'no_resources'],
  ['ports before resources', { ports: 11, cpu: 2_001 }, 'no_ports'],
])('a machine lacks %s', (_, needs, lack) => {
  expect(findLack(WHOLE, { ...WHOLE, ...needs })).toBe(lack);
});

test('the ports in ranges and the assigned ports of servers are theirs alone', () => {
  const in_range = serverWith(rangeOf(19_990, 20_002), rangeOf(20_008, 20_020));
  expect(new MachineRoom(LIMITS).portsInRanges([in_range])).toEqual(
    new Set([...numbersIn({ min: 20_000, max: 20_002 }), 20_008, 20_009]),
  );
  const relayed = serverWith({ ...listen('udp'), public_port: 20_003, relay_port: 20_004 });
  expect(portsAssignedTo([in_range, relayed])).toEqual(new Set([20_003, 20_004]));
});

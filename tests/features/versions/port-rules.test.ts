import { describe, expect, test } from 'bun:test';
import type { PortConfig } from '../../../src/features/versions/config.ts';
import { portProblems } from '../../../src/features/versions/port-rules.ts';
import { expectAdvice } from '../../support/problem-advice.ts';

const RANGE = { min: 26_000, max: 26_010 };
const HOST = { proxy: 'none', protocol: 'udp', port_range: RANGE } as const;

function problemsOf(ports: Record<string, PortConfig>, network_mode: 'bridge' | 'host' = 'bridge'): string[] {
  const paths = portProblems(ports, network_mode);
  expectAdvice(paths.map((path) => ({ path })));
  return paths.map((path) => path.join('/'));
}

/** Returns what is wrong with a single port. */
const problemsOfOne = (port: PortConfig, network_mode: 'bridge' | 'host') =>
  problemsOf({ game: port }, network_mode).map((problem) => problem.replace('ports/*game*/', ''));

describe('a port is refused', () => {
  const CASES: ['bridge' | 'host', PortConfig, string[]][] = [
    ['bridge', {}, ['missing-port-and-port-range']],
    ['bridge', { port: 80, port_range: RANGE }, ['duplicate-port-and-port-range', 'unsupported-port-range']],
    ['bridge', { port_range: RANGE }, ['unsupported-port-range']],
    ['bridge', { port: 80, proxy: 'none' }, ['needs-host-network']],
    ['bridge', HOST, ['needs-host-network']],
    ['host', { ...HOST, proxy: 'game_guard' }, ['unsupported-port-range']],
    ['host', { proxy: 'none', protocol: 'udp', port: 80 }, ['unsupported-target-port']],
    ['host', { proxy: 'none', port: 80 }, ['unsupported-target-port', 'needs-game-guard']],
    ...(['http', 'https', 'tcp_tls'] as const).map((protocol): ['host', PortConfig, string[]] => [
      'host',
      { ...HOST, protocol },
      ['needs-game-guard'],
    ]),
    ['host', { proxy: 'none', port_range: RANGE }, ['needs-game-guard']],
    ['host', { ...HOST, port_range: { min: 26_010, max: 26_000 } }, ['range-min-gt-max']],
    ['host', { ...HOST, port_range: { min: 25_999, max: 26_000 } }, ['port-out-of-range']],
    ['host', { ...HOST, port_range: { min: 31_999, max: 32_000 } }, ['port-out-of-range']],
  ];
  for (const [network_mode, port, problems] of CASES) {
    test(`on the ${network_mode} network: ${JSON.stringify(port)}`, () => {
      expect(problemsOfOne(port, network_mode)).toEqual(problems);
    });
  }

  for (const label of ['', 'A', 'a_b', '-a', 'a-', 'a--b', 'a b', 'a\nb', 'x'.repeat(17)]) {
    test(`with the label ${JSON.stringify(label)}`, () => {
      expect(problemsOf({ [label]: { port: 80 } })).toEqual([`ports/*${label}*/label-invalid`]);
    });
  }
});

describe('ports are refused together', () => {
  test('for the same port and protocol; the default protocol is https', () => {
    expect(
      problemsOf({ a: { port: 80 }, b: { port: 80, protocol: 'https' }, c: { port: 80, protocol: 'tcp' } }),
    ).toEqual(['ports/*b*/port-protocol-not-unique']);
  });

  test('for ranges that overlap by a single port', () => {
    const range = (min: number, max: number) => ({ ...HOST, port_range: { min, max } });
    const ports = { a: range(26_000, 26_010), b: range(26_010, 26_020), c: range(26_021, 26_021) };
    expect(problemsOf(ports, 'host')).toEqual(['ports/*b*/ranges-overlap']);
  });

  test('for being more than 16, and the others are not checked', () => {
    const make = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`port-${index}`, { port: index }]));
    expect(problemsOf(make(16))).toEqual([]);
    expect(problemsOf(make(17))).toEqual(['ports-too-many']);
    expect(problemsOf({ ...make(17), BAD: {} })).toEqual(['ports-too-many']);
  });
});

describe('a port is accepted', () => {
  const PROTOCOLS = ['http', 'https', 'tcp', 'tcp_tls', 'udp'] as const;
  for (const protocol of PROTOCOLS) {
    test(`behind the gateway, ${protocol}, on either network`, () => {
      for (const network_mode of ['bridge', 'host'] as const) {
        expect(problemsOfOne({ port: 0, protocol, proxy: 'game_guard' }, network_mode)).toEqual([]);
        expect(problemsOfOne({ port: 65_535, protocol }, network_mode)).toEqual([]);
      }
    });
  }

  test('as a range on the host, tcp or udp, up to both ends of the allowed ports', () => {
    for (const protocol of ['tcp', 'udp'] as const) {
      expect(problemsOfOne({ ...HOST, protocol, port_range: { min: 26_000, max: 31_999 } }, 'host')).toEqual([]);
    }
  });
});

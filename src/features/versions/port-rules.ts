import { isNameId } from '../names.ts';
import type { NetworkMode } from '../ports.ts';
import type { PortConfig } from './config.ts';
import { type ProblemPath, toPathPart } from './problem-paths.ts';

export const PORTS_MAX = 16;
/** Bounds for ranges of host ports (specification: Limits). */
export const RANGE_MIN = 26_000;
export const RANGE_MAX = 31_999;

/** Returns what is wrong with the ports of a game mode. */
export function portProblems(ports: Record<string, PortConfig>, network_mode: NetworkMode): ProblemPath[] {
  const entries = Object.entries(ports);
  const seen = new Set<string>();
  return [
    ...(entries.length > PORTS_MAX ? [['ports-too-many']] : []),
    ...entries.slice(0, PORTS_MAX).flatMap(([label, port], index) => {
      const before = entries.slice(0, index).map(([, earlier]) => earlier);
      const paths = [
        ...(isNameId(label) ? [] : [['label-invalid']]),
        ...combinationProblems(port, network_mode),
        ...rangeProblems(port, before),
        ...(isSeen(port, seen) ? [['port-protocol-not-unique']] : []),
      ];
      return paths.map((path) => ['ports', toPathPart(label), ...path]);
    }),
  ];
}

/** A port is either one port behind the gateway or a range of host ports. */
function combinationProblems(port: PortConfig, network_mode: NetworkMode): ProblemPath[] {
  const { protocol = 'https', proxy = 'game_guard' } = port;
  const has_port = port.port !== undefined;
  const has_range = port.port_range !== undefined;
  const is_host = network_mode === 'host';
  return [
    ...(has_port && has_range ? [['duplicate-port-and-port-range']] : []),
    ...(!has_port && !has_range ? [['missing-port-and-port-range']] : []),
    ...(is_host && proxy === 'none' && has_port ? [['unsupported-target-port']] : []),
    ...(proxy === 'game_guard' && has_range ? [['unsupported-port-range']] : []),
    ...(!is_host && proxy === 'none' ? [['needs-host-network']] : []),
    ...(port.presence === 'gateway' && (proxy === 'none' || (protocol !== 'http' && protocol !== 'https'))
      ? [['presence-needs-http']]
      : []),
    ...(is_host && proxy === 'none' && protocol !== 'tcp' && protocol !== 'udp' ? [['needs-game-guard']] : []),
  ];
}

function rangeProblems({ port_range }: PortConfig, before: PortConfig[]): ProblemPath[] {
  if (!port_range) return [];
  const { min, max } = port_range;
  const overlaps = before.some(
    (other) => other.port_range && other.port_range.min <= max && min <= other.port_range.max,
  );
  return [
    ...(min > max ? [['range-min-gt-max']] : []),
    ...(min < RANGE_MIN || max > RANGE_MAX ? [['port-out-of-range']] : []),
    ...(overlaps ? [['ranges-overlap']] : []),
  ];
}

function isSeen({ port, protocol = 'https' }: PortConfig, seen: Set<string>): boolean {
  if (port === undefined) return false;
  const pair = `${protocol} ${port}`;
  if (seen.has(pair)) return true;
  seen.add(pair);
  return false;
}

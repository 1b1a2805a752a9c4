import type { DevelopmentPort } from '../../platform/tokens/caller.ts';
import {
  type ContentProblem,
  displayNameProblem,
  isNameId,
  LONG_DISPLAY_NAME_BYTES_MAX,
  nameIdProblem,
} from '../names.ts';

const PORTS_MAX = 16;

/** What is wrong with a namespace's names; whether they are taken is another question. */
export function namespaceProblems(wanted: { display_name: string; name_id: string }): ContentProblem[] {
  const display_name = displayNameProblem(wanted.display_name, LONG_DISPLAY_NAME_BYTES_MAX);
  const name_id = nameIdProblem(wanted.name_id);
  return [
    ...(display_name ? [{ path: ['display-name', display_name] }] : []),
    ...(name_id ? [{ path: ['name-id', name_id] }] : []),
  ];
}

/** What is wrong with the ports of a development token (field-behaviour 8.5); paths name a port by its place. */
export function developmentPortProblems(ports: DevelopmentPort[]): ContentProblem[] {
  const problems = ports.flatMap((port, index) => {
    const before = ports.slice(0, index);
    return portProblems(port, before).map((problem) => ({ path: ['ports', String(index), problem] }));
  });
  return ports.length > PORTS_MAX ? [{ path: ['ports-too-many'] }, ...problems] : problems;
}

function portProblems({ label, protocol, port, port_range }: DevelopmentPort, before: DevelopmentPort[]): string[] {
  const is_range_protocol = protocol === 'tcp' || protocol === 'udp';
  const is_taken = before.some((other) => port !== undefined && other.port === port && other.protocol === protocol);
  const overlaps = before.some(
    (other) =>
      port_range &&
      other.port_range &&
      other.port_range.min <= port_range.max &&
      port_range.min <= other.port_range.max,
  );
  const checks: [boolean, string][] = [
    [!isNameId(label), 'label-invalid'],
    [port !== undefined && port_range !== undefined, 'duplicate-port-and-port-range'],
    [port === undefined && port_range === undefined, 'missing-port-and-port-range'],
    [port_range !== undefined && !is_range_protocol, 'unsupported-port-range'],
    [port_range !== undefined && port_range.min > port_range.max, 'range-min-gt-max'],
    [is_taken, 'port-protocol-not-unique'],
    [overlaps, 'ranges-overlap'],
  ];
  return checks.filter(([is_wrong]) => is_wrong).map(([, problem]) => problem);
}

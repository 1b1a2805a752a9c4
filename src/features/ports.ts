import { type Static, Type } from '@sinclair/typebox';
import { oneOf, U32 } from '../platform/http/shapes.ts';
import { PORT_PROTOCOLS } from '../platform/tokens/caller.ts';
import type { ProblemAdvice } from './names.ts';

/** Shapes of ports in the requests and answers of several features. */
export const Protocol = oneOf('Protocol', PORT_PROTOCOLS);
export const PortRange = Type.Object({ min: U32, max: U32 }, { title: 'PortRange' });
export const NetworkMode = oneOf('NetworkMode', ['bridge', 'host']);
export type NetworkMode = Static<typeof NetworkMode>;

/** What to do about problems of ports, in versions and in development tokens. */
export const PORT_ADVICE: ProblemAdvice = new Map([
  ['duplicate-port-and-port-range', 'set port or port_range, not both'],
  ['missing-port-and-port-range', 'set port or port_range'],
  ['range-min-gt-max', 'min is above max'],
  ['ranges-overlap', 'overlaps the range of an earlier port'],
  ['port-protocol-not-unique', 'an earlier port has the same number and protocol'],
]);

import { type Static, Type } from '@sinclair/typebox';
import { oneOf, U32 } from '../platform/http/shapes.ts';
import { PORT_PROTOCOLS } from '../platform/tokens/caller.ts';

/** Shapes of ports in the requests and answers of several features. */
export const Protocol = oneOf('Protocol', PORT_PROTOCOLS);
export const PortRange = Type.Object({ min: U32, max: U32 }, { title: 'PortRange' });
export const NetworkMode = oneOf('NetworkMode', ['bridge', 'host']);
export type NetworkMode = Static<typeof NetworkMode>;

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { ProcessIdentity } from '../../../../platform/system/processes.ts';
import type { Identity } from '../runtime.ts';

export const IdentityShape = Type.Object({ pid: Type.Integer(), start_ticks: Type.Integer(), boot_id: Type.String() });

/** Returns the first process of a server. */
export function readIdentity(identity: Identity | undefined): ProcessIdentity | undefined {
  return Value.Check(IdentityShape, identity) ? identity : undefined;
}

/** Returns the identity of a server by its first process. */
export function writeIdentity({ pid, start_ticks, boot_id }: ProcessIdentity): Identity {
  return { pid, start_ticks, boot_id };
}

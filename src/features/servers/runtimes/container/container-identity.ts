import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { ProcessIdentity } from '../../../../platform/system/processes.ts';
import { IdentityShape } from '../process/identity.ts';
import type { Identity } from '../runtime.ts';

const Shape = Type.Object({ container_shim: IdentityShape });

/** Returns the shim of a container. */
export function readContainerIdentity(identity: Identity | undefined): ProcessIdentity | undefined {
  return Value.Check(Shape, identity) ? identity.container_shim : undefined;
}

/** Returns the identity of a container by its shim. */
export function writeContainerIdentity({ pid, start_ticks, boot_id }: ProcessIdentity): Identity {
  return { container_shim: { pid, start_ticks, boot_id } };
}

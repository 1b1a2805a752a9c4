import { Type } from '@sinclair/typebox';
import type { Isolation } from '../runtime.ts';
import type { EngineClient } from './engine-client.ts';

const Version = Type.Object({ Components: Type.Optional(Type.Array(Type.Object({ Name: Type.String() }))) });
const Facts = Type.Object({
  MemoryLimit: Type.Optional(Type.Boolean()),
  CpuCfsQuota: Type.Optional(Type.Boolean()),
  PidsLimit: Type.Optional(Type.Boolean()),
  SwapLimit: Type.Optional(Type.Boolean()),
  SecurityOptions: Type.Optional(Type.Array(Type.String())),
});

/** What an engine is, and what it can enforce. */
export interface EngineFacts {
  is_podman: boolean;
  has_swap_limit: boolean;
  isolation: Isolation;
}

export async function readEngineFacts(client: EngineClient): Promise<EngineFacts> {
  const version = await client.read(Version, { method: 'GET', path: '/version' });
  const facts = await client.read(Facts, { method: 'GET', path: '/info' });
  const is_podman = version.Components?.some(({ Name }) => Name.startsWith('Podman')) ?? false;
  const has_seccomp = facts.SecurityOptions?.some((one) => one.startsWith('name=seccomp')) ?? false;
  const missing = [
    // An engine has no setting for it, unlike the containers that Muster runs itself.
    'the refusal of connections to private networks',
    ...(is_podman ? ['the refusal of connections to other containers'] : []),
    ...(has_seccomp ? [] : ['a filter of system calls']),
    ...(facts.MemoryLimit ? [] : ['a limit of memory']),
    ...(facts.CpuCfsQuota ? [] : ['a limit of processor time']),
    ...(facts.PidsLimit ? [] : ['a limit of processes']),
  ];
  return { is_podman, has_swap_limit: facts.SwapLimit ?? false, isolation: { level: 'partial', missing } };
}

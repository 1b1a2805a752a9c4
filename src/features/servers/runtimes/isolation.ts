import { readLandlockAbi, restrictsPorts, restrictsSignals } from '../../../platform/containment/landlock.ts';
import { canFilterCalls } from '../../../platform/containment/seccomp.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { Cgroups, Controller } from '../../../platform/system/cgroups.ts';
import type { Isolation } from './runtime.ts';

/**
 * How servers are isolated. `on`: as far as the machine can. `required`: completely, or they are not started. `off`: not at
 * all.
 */
export type IsolationSetting = 'on' | 'required' | 'off';

const LIMITS: readonly [Controller, string][] = [
  ['memory', 'memory'],
  ['cpu', 'processor time'],
  ['pids', 'processes'],
];

/** Returns what this machine enforces for its servers. */
export function readIsolation(setting: IsolationSetting, { controllers }: Pick<Cgroups, 'controllers'>): Isolation {
  if (setting === 'off') return { level: 'off', missing: [] };
  const abi = readLandlockAbi();
  const missing = [
    ...LIMITS.flatMap(([controller, word]) => (controllers.includes(controller) ? [] : `limits of ${word}`)),
    ...(abi > 0 ? [] : ['files']),
    ...(restrictsPorts(abi) ? [] : ['ports']),
    ...(restrictsSignals(abi) ? [] : ['signals']),
    ...(canFilterCalls() ? [] : ['system calls']),
  ];
  return { level: missing.length === 0 ? 'full' : 'partial', missing };
}

/** Throws an error if the server would be isolated only partially. */
export function refusePartialIsolation({ missing }: Isolation): void {
  if (missing.length === 0) return;
  throw new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', {
    error: `its machine requires full isolation (MUSTER_ISOLATION=required), but cannot enforce ${missing.join(', ')}: tell the operator`,
  });
}

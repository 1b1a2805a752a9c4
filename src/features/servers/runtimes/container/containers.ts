import type { Events } from '../../../../platform/events.ts';
import type { MissingRuntime, Runtime } from '../runtime.ts';
import { findContainerPrograms } from './container-programs.ts';
import { openContainerRuntime } from './container-runtime.ts';

export interface ContainersOptions {
  is_on: boolean;
  has_read_only_root: boolean;
  /** The directory with a folder for each container. */
  directory: string;
  /** The name or address at which players reach this machine. */
  host: string;
  /** The address at which servers reach the service. */
  api_url: string;
  events: Events;
}

/** Opens the runtime of containers. If this machine cannot run any, returns why, and what to do about it. */
export function openContainers({ is_on, events, ...options }: ContainersOptions): Runtime | MissingRuntime {
  if (!is_on) return { why_missing: 'its operator turned containers off' };
  if (process.getuid?.() !== 0) return { why_missing: 'containers need a service that runs as root' };
  const programs = findContainerPrograms();
  if (typeof programs === 'string') return { why_missing: programs };
  return openContainerRuntime({
    ...options,
    programs,
    onStartFailed: (server_id, cause) => events.emit({ event: 'server_step_failed', server_id, step: 'start', cause }),
  });
}

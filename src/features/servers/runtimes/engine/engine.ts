import type { Events } from '../../../../platform/events.ts';
import type { IsolationSetting } from '../isolation.ts';
import type { MissingRuntime, Runtime } from '../runtime.ts';
import { EngineClient } from './engine-client.ts';
import { findTar } from './engine-images.ts';
import { openEngineRuntime } from './engine-runtime.ts';

const UNIX_PREFIX = 'unix://';

export interface EngineOptions {
  is_on: boolean;
  is_root: boolean;
  has_read_only_root: boolean;
  isolation: IsolationSetting;
  /** The engine's socket, like unix:///run/docker.sock; undefined if none is configured. */
  engine_url: string | undefined;
  /** The directory with a folder for each container. */
  directory: string;
  /** The name or address at which players reach this machine. */
  host: string;
  /** The address at which servers reach the service. */
  api_url: string;
  node_id: string;
  events: Events;
}

/**
 * Opens the runtime of Docker's or Podman's containers. Returns undefined if no engine is configured. An engine that does
 * not answer yet is reported, and used once it does.
 */
export async function openEngine(options: EngineOptions): Promise<Runtime | MissingRuntime | undefined> {
  const { is_on, is_root, engine_url, events, isolation, ...rest } = options;
  if (!is_on || engine_url === undefined) return undefined;
  // Access to the socket amounts to root, and a service without root shares its user with the game servers' processes.
  if (!is_root) return { why_missing: 'a container engine needs a service that runs as root' };
  if (findTar() === undefined)
    return { why_missing: 'its machine lacks the program "tar", which gives builds to the container engine' };
  const client = new EngineClient(engine_url.slice(UNIX_PREFIX.length));
  try {
    await client.call({ method: 'GET', path: '/_ping' });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    events.emit({ event: 'container_engine_unavailable', engine: engine_url, reason });
  }
  return openEngineRuntime({
    ...rest,
    client,
    is_isolation_required: isolation === 'required',
    onFailed: (server_id, step, cause) => events.emit({ event: 'server_step_failed', server_id, step, cause }),
  });
}

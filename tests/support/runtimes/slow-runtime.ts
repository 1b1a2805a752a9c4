import type { Observation, Runtime, ServerHandle, StartOrder } from '../../../src/features/servers/runtimes/runtime.ts';

/** A runtime that answers late, like an engine on another machine, and delegates to another runtime. */
export interface SlowRuntime extends Runtime {
  /** Makes a server unreachable, as if for a time. Its processes continue. */
  cutOff(server_id: string, for_ms: number): void;
  /** Makes a server reachable again. */
  reconnect(server_id: string): void;
  /** Whether servers stay pending, however often they are observed. */
  is_stuck: boolean;
  /** The number of observed servers so far. */
  readonly observation_count: number;
}

/** Observations for which a server is pending before it starts. */
const PENDING_OBSERVATIONS = 2;
const REASONS = ['the image is being fetched', 'the image is being unpacked'];

/**
 * Makes a runtime slow: it accepts a server, starts it after a few observations, and identifies it by a name of its own
 * instead of the identity in the other runtime.
 */
export function createSlowRuntime(inner: Runtime): SlowRuntime {
  const accepted = new Map<string, { order: StartOrder; observation_count: number }>();
  const cut_off = new Map<string, number>();
  const identityOf = (server_id: string) => ({ engine: 'slow', name: `server-${server_id}` });
  /** The inner runtime gets no identities, so it must find servers as after a restart. */
  const unknown = ({ server_id }: ServerHandle): ServerHandle => ({ server_id, identity: undefined });
  const pause = () => Bun.sleep(1);
  let total_count = 0;

  function rename(server_id: string, seen: Observation): Observation {
    return seen.is === 'running' || seen.is === 'pending' ? { ...seen, identity: identityOf(server_id) } : seen;
  }

  async function observeOne(server: ServerHandle): Promise<Observation> {
    const { server_id } = server;
    total_count += 1;
    const for_ms = cut_off.get(server_id);
    if (for_ms !== undefined) return { is: 'unreachable', for_ms };
    const waiting = accepted.get(server_id);
    if (waiting && (slow.is_stuck || waiting.observation_count < PENDING_OBSERVATIONS)) {
      const reason = REASONS[waiting.observation_count] ?? 'the image is being unpacked';
      waiting.observation_count += 1;
      return { is: 'pending', identity: identityOf(server_id), reason };
    }
    accepted.delete(server_id);
    if (waiting) return rename(server_id, await inner.start(waiting.order));
    const seen = (await inner.observe([unknown(server)])).get(server_id);
    if (!seen) throw new Error('the inner runtime returns an observation of each server');
    return rename(server_id, seen);
  }

  const slow: SlowRuntime = {
    ...inner,
    is_stuck: false,
    async start(order) {
      const { server_id } = order;
      await pause();
      const seen = (await inner.observe([{ server_id, identity: undefined }])).get(server_id);
      if (seen?.is === 'running') return { ...seen, identity: identityOf(server_id) };
      if (!accepted.has(server_id)) accepted.set(server_id, { order, observation_count: 0 });
      return { is: 'pending', identity: identityOf(server_id), reason: 'it was accepted' };
    },
    async observe(servers) {
      await pause();
      const observed = new Map<string, Observation>();
      for (const server of servers) observed.set(server.server_id, await observeOne(server));
      return observed;
    },
    async stop(server) {
      await pause();
      const seen = await observeOne(server);
      if (seen.is === 'pending' || seen.is === 'unreachable') return false;
      const inside = (await inner.observe([unknown(server)])).get(server.server_id);
      if (inside?.is !== 'running') return true;
      return await inner.stop({ server_id: server.server_id, identity: inside.identity });
    },
    async kill(servers, onGone) {
      await pause();
      for (const { server_id } of servers) {
        accepted.delete(server_id);
        cut_off.delete(server_id);
      }
      const inside = await inner.observe(servers.map(unknown));
      return await inner.kill(
        servers.map(({ server_id }) => {
          const seen = inside.get(server_id);
          return { server_id, identity: seen?.is === 'running' ? seen.identity : undefined };
        }),
        onGone,
      );
    },
    cutOff: (server_id, for_ms) => void cut_off.set(server_id, for_ms),
    reconnect: (server_id) => void cut_off.delete(server_id),
    get observation_count() {
      return total_count;
    },
  };
  return slow;
}

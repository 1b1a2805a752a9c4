import type { Observation, Runtime, ServerHandle, StartOrder } from '../../src/features/servers/runtimes/runtime.ts';

/** A runtime that answers late, like an engine on another machine, and delegates to another runtime. */
export interface SlowRuntime extends Runtime {
  /** Makes a server unreachable from a moment on. Its processes continue. */
  cutOff(server_id: string, since: Date): void;
  /** Makes a server reachable again. */
  find(server_id: string): void;
  /** Whether servers stay pending, however often they are observed. */
  is_stuck: boolean;
  /** The number of observed servers so far. */
  readonly looks: number;
}

/** Observations for which a server is pending before it starts. */
const PENDING_LOOKS = 2;
const REASONS = ['the image is being fetched', 'the image is being unpacked'];

/**
 * Makes a runtime slow: it accepts a server, starts it after a few observations, and identifies it by a name of its own
 * instead of the identity in the other runtime.
 */
export function createSlowRuntime(below: Runtime): SlowRuntime {
  const accepted = new Map<string, { order: StartOrder; looks: number }>();
  const cut_off = new Map<string, Date>();
  const identityOf = (server_id: string) => ({ engine: 'slow', name: `server-${server_id}` });
  /** After a restart the runtime below must find servers by itself. */
  const unknown = ({ server_id }: ServerHandle): ServerHandle => ({ server_id, identity: undefined });
  const pause = () => Bun.sleep(1);
  let looks = 0;

  function rename(server_id: string, seen: Observation): Observation {
    return seen.is === 'running' || seen.is === 'pending' ? { ...seen, identity: identityOf(server_id) } : seen;
  }

  async function look(server: ServerHandle): Promise<Observation> {
    const { server_id } = server;
    looks += 1;
    const since = cut_off.get(server_id);
    if (since) return { is: 'unreachable', since };
    const waiting = accepted.get(server_id);
    if (waiting && (slow.is_stuck || waiting.looks < PENDING_LOOKS)) {
      const reason = REASONS[waiting.looks] ?? 'the image is being unpacked';
      waiting.looks += 1;
      return { is: 'pending', identity: identityOf(server_id), reason };
    }
    accepted.delete(server_id);
    if (waiting) return rename(server_id, await below.start(waiting.order));
    const seen = (await below.observe([unknown(server)])).get(server_id);
    if (!seen) throw new Error('the runtime below says something of each server');
    return rename(server_id, seen);
  }

  const slow: SlowRuntime = {
    ...below,
    is_stuck: false,
    async start(order) {
      const { server_id } = order;
      await pause();
      const seen = (await below.observe([{ server_id, identity: undefined }])).get(server_id);
      if (seen?.is === 'running') return { ...seen, identity: identityOf(server_id) };
      if (!accepted.has(server_id)) accepted.set(server_id, { order, looks: 0 });
      return { is: 'pending', identity: identityOf(server_id), reason: 'it was accepted' };
    },
    async observe(servers) {
      await pause();
      const observed = new Map<string, Observation>();
      for (const server of servers) observed.set(server.server_id, await look(server));
      return observed;
    },
    async stop(server) {
      await pause();
      const seen = await look(server);
      if (seen.is === 'pending' || seen.is === 'unreachable') return false;
      const inside = (await below.observe([unknown(server)])).get(server.server_id);
      if (inside?.is !== 'running') return true;
      return await below.stop({ server_id: server.server_id, identity: inside.identity });
    },
    async kill(servers) {
      await pause();
      for (const { server_id } of servers) {
        accepted.delete(server_id);
        cut_off.delete(server_id);
      }
      const inside = await below.observe(servers.map(unknown));
      return await below.kill(
        servers.map(({ server_id }) => {
          const seen = inside.get(server_id);
          return { server_id, identity: seen?.is === 'running' ? seen.identity : undefined };
        }),
      );
    },
    cutOff: (server_id, since) => void cut_off.set(server_id, since),
    find: (server_id) => void cut_off.delete(server_id),
    get looks() {
      return looks;
    },
  };
  return slow;
}

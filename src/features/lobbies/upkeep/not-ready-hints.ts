import { after, type Clock } from '../../../platform/clock.ts';
import type { Events } from '../../../platform/events.ts';
import type { Machines } from '../../machines/machines.ts';
import { READY_CALL } from '../../matchmaker-paths.ts';
import type { Servers } from '../../servers/servers.ts';
import type { LobbyWithoutState } from '../store.ts';
import type { NamespaceSteps } from './namespace-steps.ts';

/** Time that a server may run without calling ready before its developer gets a hint. */
export const HINT_AFTER_MS = 10_000;
const LAST_LINES = 10;

const HINT = `this server has run for ${HINT_AFTER_MS / 1_000} s without ${READY_CALL}, so no player can enter its lobby yet. Let it make this call, with SERVICE_TOKEN as the bearer token, as soon as it takes players`;

interface HintingDependencies {
  clock: Clock;
  events: Events;
  servers: Servers;
  /** Each process reports the servers of its machines. */
  machines: Pick<Machines, 'heldIds'>;
  steps: NamespaceSteps;
}

/** Creates the hints for operators and developers about servers that run but have not called ready. */
export function createHinting({ clock, events, servers, machines, steps }: HintingDependencies) {
  const hinted = new Set<string>();

  async function hint({ lobby_id, server_id }: LobbyWithoutState): Promise<void> {
    const last_lines = await servers.lastLinesOf(server_id, LAST_LINES);
    await servers.addLogLine(server_id, HINT);
    hinted.add(lobby_id);
    events.emit({ event: 'lobby_not_ready', lobby_id, server_id, hint: HINT, last_lines });
  }

  return {
    /** Reports each server once. `unready`: all lobbies that are older than `HINT_AFTER_MS` and not ready. */
    async sendHints(unready: LobbyWithoutState[]): Promise<void> {
      const ids = new Set(unready.map(({ lobby_id }) => lobby_id));
      for (const lobby_id of hinted) if (!ids.has(lobby_id)) hinted.delete(lobby_id);
      const silent = unready.filter(({ lobby_id }) => !hinted.has(lobby_id));
      if (silent.length === 0) return;
      const started_before = after(clock.now(), -HINT_AFTER_MS);
      const server_ids = silent.map(({ server_id }) => server_id);
      const running = await servers.selectRunningOn({ node_ids: machines.heldIds(), server_ids, started_before });
      const to_hint = silent.filter(({ server_id }) => running.has(server_id));
      await steps.forEachNamespace('hints', to_hint, async (_namespace_id, lobbies) => {
        for (const lobby of lobbies) await hint(lobby);
      });
    },
  };
}

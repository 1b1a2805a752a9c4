import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../platform/database/database.ts';
import { StartError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import * as store from './store.ts';

const ATTEMPT_EVERY_MS = 250;

interface RegistrationOptions {
  database: Database;
  events: Events;
  /** The path of the data directory, for the operator. */
  data_directory: string;
  /** Ends the wait, and throws the reason of the signal. */
  signal?: AbortSignal | undefined;
}

/**
 * Makes this process the holder of its machine. The lock of the data directory proves that an earlier process in the same
 * place has ended. A directory in another place was moved, or is a copy of one that is in use: then waits until the heartbeat has
 * stayed the same for the machine's `lost_after_ms`. Throws StartError if it changes.
 */
export async function registerOwn(
  registration: store.Registration,
  { database, events, data_directory, signal }: RegistrationOptions,
): Promise<void> {
  const attempt = (unchanged_beat: number | null) =>
    database.transact((tx) => store.registerMachine(tx, registration, unchanged_beat));
  if (await attempt(null)) return;
  const { node_id } = registration;
  const first = await store.selectMachine(database.queries, node_id);
  const { lost_after_ms = 0, name = '', beat = 0 } = first ?? {};
  events.emit({ event: 'machine_awaited', node_id, host: name, for_ms: lost_after_ms });
  const started = performance.now();
  for (;;) {
    const is_over = performance.now() - started >= lost_after_ms;
    if (await attempt(is_over ? beat : null)) return;
    const current = await store.selectMachine(database.queries, node_id);
    if (current && current.beat !== beat && current.state === 'up') {
      throw new StartError(
        `The data directory ${data_directory} is a copy: the machine ${node_id} already runs on ${current.name} with another data directory. To add a machine, start with an empty data directory; to move one, stop the other first.`,
      );
    }
    await sleep(ATTEMPT_EVERY_MS, undefined, { signal }).catch(() => signal?.throwIfAborted());
  }
}

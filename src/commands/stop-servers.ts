import type { Events } from '../platform/events.ts';
import type { Service } from '../service.ts';

/** Ends the game servers of a service that is about to close. Logs if some still run: the next start finds them. */
export async function stopServers(service: Service, events: Events): Promise<void> {
  try {
    await service.stopTakingServers();
    await service.stopServers();
  } catch (cause) {
    events.emit({ event: 'servers_stop_failed', cause });
  }
}

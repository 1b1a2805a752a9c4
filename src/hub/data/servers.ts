import { toAddress } from '../../shared/ports.ts';
import type { Answer } from './api.ts';

export const SERVERS = '/games/{game_id}/environments/{environment_id}/servers';

export type Server = Answer<typeof SERVERS, 'get'>['servers'][number];

type ServerPort = Server['network']['ports'][string];

export interface ServerStatus {
  text: string;
  tone: string;
}

export const STATUSES = {
  starting: { text: 'starting', tone: 'warn' },
  running: { text: 'running', tone: 'good' },
  ending: { text: 'ending', tone: 'warn' },
  ended: { text: 'ended', tone: 'quiet' },
} as const satisfies Record<string, ServerStatus>;

/** Returns the status of a server. `is_ending`: whether a server whose end was requested has not ended yet. */
export function statusOf({ started_at, destroyed_at }: Server, { is_ending }: { is_ending: boolean }): ServerStatus {
  if (destroyed_at !== undefined) return is_ending ? STATUSES.ending : STATUSES.ended;
  return started_at === undefined ? STATUSES.starting : STATUSES.running;
}

/** Returns where players reach a port of a server, or a range of ports; undefined before the server has started. */
export function portAddress({ public_hostname, public_port, port_range }: ServerPort): string | undefined {
  return toAddress({ hostname: public_hostname, port: public_port, port_range });
}

import { type Database, LOCKS } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { isShortOfSpace } from '../../platform/system/disk-space.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import { DAY_MS } from '../../platform/units.ts';
import type { Groups } from '../groups/groups.ts';
import type { Identities } from '../identities/identities.ts';
import { createDemo, type Demo, type DemoDependencies } from './demo.ts';

/**
 * The administrator has no refresh cookie, so the token lives as long as a cloud token. Each start creates a new one.
 */
const ADMINISTRATOR_TOKEN_LIFETIME_MS = 365 * DAY_MS;

interface BootstrapSettings {
  /** Whether to create the demo game. */
  with_demo: boolean;
}

export interface BootstrapDependencies extends DemoDependencies, BootstrapSettings {
  database: Database;
  events: Events;
  tokens: Tokens;
  identities: Identities;
  groups: Groups;
  /** Ends the wait for another process that starts. */
  signal: AbortSignal | undefined;
}

export interface BootstrapResult {
  /** Whether this start created the administrator. */
  is_first_start: boolean;
  administrator_token: string;
  /** Reads the metrics of the service, and nothing else. */
  metrics_token: string;
  demo: Demo | undefined;
}

/**
 * Creates what a new service needs: an administrator, a developer group and the demo game. Keeps what exists, so that
 * the next start completes one that was interrupted.
 */
export async function bootstrap(dependencies: BootstrapDependencies): Promise<BootstrapResult> {
  const { database, tokens, identities, groups, with_demo, signal } = dependencies;
  const work = async (_connection: unknown, lost: AbortSignal) => {
    const existing = await identities.findAdministrator();
    // Without the lock, another process may be creating the same.
    lost.throwIfAborted();
    const administrator =
      existing ?? (await identities.create({ display_name: 'Administrator', is_registered: true, is_admin: true }));
    const { identity_id } = administrator;
    const caller = { kind: 'identity', identity_id } as const;
    const [oldest_group] = await groups.listOf(identity_id);
    lost.throwIfAborted();
    const group = oldest_group ?? (await groups.create(caller, 'Developers'));
    lost.throwIfAborted();
    const demo = with_demo ? await createDemoIfItFits(dependencies, caller, group.group_id) : undefined;
    return {
      is_first_start: existing === undefined,
      administrator_token: await tokens.issue(caller, { lifetime_ms: ADMINISTRATOR_TOKEN_LIFETIME_MS }),
      metrics_token: await tokens.issue({ kind: 'metrics' }),
      demo,
    };
  };
  return await database.exclusively(LOCKS.first_start, work, { signal });
}

/** Creates the demo game. Without room for it on the disk, the service starts without it, and the next start tries again. */
async function createDemoIfItFits(
  dependencies: BootstrapDependencies,
  caller: CallerOf<'identity'>,
  developer_group_id: string,
): Promise<Demo | undefined> {
  try {
    return await createDemo(dependencies, caller, developer_group_id);
  } catch (cause) {
    if (!isShortOfSpace(cause)) throw cause;
    dependencies.events.emit({ event: 'demo_not_created', cause });
    return undefined;
  }
}

import { after, CLOCK_SKEW_MAX_MS, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import * as store from './store.ts';
import type { IdentityRow } from './tables.ts';

const CLEAN_UP_EVERY_MS = 10 * 60_000;

/** What remains of a deleted identity. */
const ERASED = {
  display_name: 'Deleted',
  bio: '',
  is_registered: false,
  is_admin: false,
  is_deleted: true,
  avatar_upload_id: null,
};

interface ForgettingDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  /** Updates an identity, and bumps all that shows it. */
  update(tx: Tx, identity_id: string, values: Partial<IdentityRow>): Promise<void>;
  /** Discards a picture that an identity no longer uses. */
  discardPicture(tx: Tx, upload_id: string): Promise<void>;
  /** Returns whether an identity is a member of any group, or asks to join one. */
  isMemberOrAsksToJoin(tx: Tx, identity_id: string): Promise<boolean>;
  /** Removes an identity from all groups; a group it owns goes to another member. */
  leaveGroups(identity_id: string): Promise<void>;
}

/**
 * Starts the loop that deletes identities when the time of their deletion has come. It erases names, bios and pictures. The
 * rows are removed later, like those of guests.
 */
export function startForgetting(dependencies: ForgettingDependencies, signal: AbortSignal): Loop {
  const { database, clock, events } = dependencies;
  const { queries } = database;
  return startLoop({
    name: 'forget-identities',
    every_ms: CLEAN_UP_EVERY_MS,
    signal,
    events,
    async step() {
      // A process with a slower clock may still cancel a deletion that is due here.
      const due_before = after(clock.now(), -CLOCK_SKEW_MAX_MS);
      // One that fails must not keep the others waiting; the loop logs it and repeats.
      const failures: unknown[] = [];
      for (const { identity_id } of await store.selectToDelete(queries, due_before)) {
        await forget(dependencies, identity_id, due_before).catch((failure: unknown) => failures.push(failure));
      }
      if (failures.length > 0) throw failures[0];
      return 0;
    },
  });
}

/** Deletes an identity if its deletion is still due. */
async function forget(dependencies: ForgettingDependencies, identity_id: string, due_before: Date): Promise<void> {
  const { database, clock, events, update, discardPicture, isMemberOrAsksToJoin, leaveGroups } = dependencies;
  if (!isDue(await store.selectIdentity(database.queries, identity_id), due_before)) return;
  await leaveGroups(identity_id);
  const is_erased = await database.transact(async (tx) => {
    const before = await store.lockIdentity(tx, identity_id);
    // It may have joined a group in between, and then the next step repeats this. Groups lock the identity before they admit
    // it, and refuse a deleted one.
    if (!isDue(before, due_before) || (await isMemberOrAsksToJoin(tx, identity_id))) return false;
    await update(tx, identity_id, ERASED);
    await store.revokeRefreshTokensOf(tx, identity_id, clock.now());
    if (before.avatar_upload_id) await discardPicture(tx, before.avatar_upload_id);
    return true;
  });
  if (is_erased) events.emit({ event: 'identity_forgotten', identity_id });
}

/** Returns whether an identity is to be deleted. Another process may have done so. */
function isDue(row: IdentityRow | undefined, due_before: Date): row is IdentityRow {
  return row?.is_deleted === false && row.delete_ts !== null && row.delete_ts <= due_before;
}

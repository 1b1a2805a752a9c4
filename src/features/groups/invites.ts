import { after } from '../../platform/clock.ts';
import { ServiceError } from '../../platform/errors.ts';
import { makeCode, normalizeCode } from '../codes.ts';
import { refuseProblem } from '../names.ts';
import * as store from './members-store.ts';
import { createMembershipChanges, type MembershipChangesDependencies } from './membership-changes.ts';
import { lockGroup } from './store.ts';
import type { InviteRow } from './tables.ts';

const INVITE_LIFETIME_MAX_MS = 30 * 24 * 3_600_000;
const INVITE_USES_MAX = 5_000;
/** Invites of a group that can be used. */
const OPEN_INVITES_MAX = 256;
const CODE_LENGTH = 8;

/** Creates the use cases of invites: codes that make people members of a group. */
export function createInvites(dependencies: MembershipChangesDependencies) {
  const { database, clock } = dependencies;
  const { change, addMember } = createMembershipChanges(dependencies);

  /**
   * Returns the group of an invite that can be used. Throws GROUP_INVITE_CODE_INVALID, GROUP_INVITE_CODE_ALREADY_USED or
   * GROUP_INVITE_CODE_EXPIRED.
   */
  async function groupOfInvite(typed: string): Promise<string> {
    return requireOpen(await store.selectInvite(database.queries, normalizeCode(typed)), clock.now()).group_id;
  }

  return {
    /**
     * Creates an invite code, for members. Times are in milliseconds. Throws VALIDATION_ERROR, GROUP_NOT_MEMBER or
     * GROUP_TOO_MANY_INVITES.
     */
    async createInvite(
      { group_id, actor_id }: { group_id: string; actor_id: string },
      { ttl, use_count }: { ttl?: number | undefined; use_count?: number | undefined },
    ): Promise<string> {
      if (!isWithin(ttl, INVITE_LIFETIME_MAX_MS)) {
        refuseProblem(['ttl', 'invalid'], `1 to ${INVITE_LIFETIME_MAX_MS} milliseconds`);
      }
      if (!isWithin(use_count, INVITE_USES_MAX)) refuseProblem(['use_count', 'invalid'], `1 to ${INVITE_USES_MAX}`);
      const now = clock.now();
      const code = makeCode(CODE_LENGTH);
      await database.transact(async (tx) => {
        await lockGroup(tx, group_id);
        if (!(await store.isListed(tx, 'members', { group_id, identity_id: actor_id })))
          throw new ServiceError('GROUP_NOT_MEMBER', {});
        if ((await store.countOpenInvites(tx, group_id, now)) >= OPEN_INVITES_MAX) {
          throw new ServiceError('GROUP_TOO_MANY_INVITES', { max: OPEN_INVITES_MAX });
        }
        await store.insertInvite(tx, {
          code,
          group_id,
          create_ts: now,
          expire_ts: ttl === undefined ? null : after(now, ttl),
          uses_left: use_count ?? null,
        });
      });
      return code;
    },
    groupOfInvite,
    /** Admits a person by an invite code and returns the group. A use that admits no one does not count. */
    async consumeInvite(typed: string, identity_id: string): Promise<string> {
      const code = normalizeCode(typed);
      const group_id = await groupOfInvite(code);
      await change({ group_id, identity_id }, async (tx, group, person) => {
        const now = clock.now();
        // No other use runs until the transaction ends, because it has locked the group.
        requireOpen(await store.selectInvite(tx, code), now);
        await store.useInvite(tx, code, now);
        await addMember(tx, group, person);
      });
      return group_id;
    },
  };
}

/** Returns an invite if it can be used, and throws why it cannot. */
function requireOpen(invite: InviteRow | undefined, now: Date): InviteRow {
  if (!invite) throw new ServiceError('GROUP_INVITE_CODE_INVALID', {});
  // Its last use has also set the time of its end.
  if (invite.uses_left === 0) throw new ServiceError('GROUP_INVITE_CODE_ALREADY_USED', {});
  if (invite.expire_ts && invite.expire_ts <= now) throw new ServiceError('GROUP_INVITE_CODE_EXPIRED', {});
  return invite;
}

function isWithin(value: number | undefined, max: number): boolean {
  return value === undefined || (Number.isInteger(value) && value > 0 && value <= max);
}

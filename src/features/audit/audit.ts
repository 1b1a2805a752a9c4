import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { toCallersError } from '../../platform/http/answers.ts';
import type { Audit, AuditedCaller, RequestedChange } from '../../platform/http/audit.ts';
import type { ChangeDetails, EffectOnOther } from '../../platform/http/call.ts';
import { startDeletingOld } from '../../platform/loop.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import { DAY_MS } from '../../platform/units.ts';
import type { Groups } from '../groups/groups.ts';
import type { Identities } from '../identities/identities.ts';
import * as store from './store.ts';
import type { AuditEntryRow } from './tables.ts';
import { type AuditAnswer, toAuditEntry } from './wire.ts';

interface AuditSettings {
  /** Days to keep entries. 0 keeps them forever. */
  audit_days: number;
}

export interface AuditDependencies extends AuditSettings {
  database: Database;
  clock: Clock;
  events: Events;
  identities: Pick<Identities, 'list' | 'requireAdministrator'>;
  groups: Pick<Groups, 'get' | 'mayActAsMember'>;
  /** Returns the game of an upload. */
  gameOfUpload(upload_id: string): Promise<string | undefined>;
  /** Returns the namespace of a lobby of a game. */
  namespaceOfLobby(lobby: { game_id: string; lobby_id: string }): Promise<string | undefined>;
}

/** Where a change belongs: who may see its entry depends on it. */
type Scope = Pick<AuditEntryRow, 'game_id' | 'namespace_id' | 'group_id'>;

/** Stands in for the caller of a change that another game made. The entry in that game's log names the caller. */
const OF_ANOTHER_GAME = {
  caller_kind: 'other_game',
  caller_id: '00000000-0000-0000-0000-000000000000',
  token_issued_ts: null,
  address: '',
  user_agent: null,
} as const;

export type AuditLog = ReturnType<typeof createAuditLog>;

/** Creates the audit log: who changed what, when and from where. */
export function createAuditLog(dependencies: AuditDependencies) {
  const { database, clock, events, identities, groups, audit_days, gameOfUpload, namespaceOfLobby } = dependencies;
  const { queries } = database;

  /** Returns where a change that has been made belongs: its caller was authorized for all that it names. */
  async function scopeOf(change: RequestedChange, details: ChangeDetails): Promise<Scope> {
    const { caller } = change;
    const idOf = (name: string) => (typeof details[name] === 'string' ? details[name] : undefined);
    const [upload_id, lobby_id] = [idOf('upload_id'), idOf('lobby_id')];
    let game_id = change.game_id ?? idOf('game_id');
    if (game_id === undefined && caller.kind === 'cloud') game_id = caller.game_id;
    if (game_id === undefined && upload_id !== undefined) game_id = await gameOfUpload(upload_id);
    let namespace_id = change.namespace_id ?? idOf('namespace_id');
    if (namespace_id === undefined && game_id !== undefined && lobby_id !== undefined) {
      namespace_id = await namespaceOfLobby({ game_id, lobby_id });
    }
    const group_id = idOf('group_id') ?? idOf('developer_group_id');
    return { game_id: game_id ?? null, namespace_id: namespace_id ?? null, group_id: group_id ?? null };
  }

  async function begin(change: RequestedChange): Promise<void> {
    const { entry_id, operation, caller, address, user_agent, game_id, namespace_id, details } = change;
    await store.insertEntry(queries, {
      entry_id,
      create_ts: clock.now(),
      operation,
      ...toColumns(caller),
      address,
      user_agent,
      details,
      game_id: game_id ?? null,
      namespace_id: namespace_id ?? null,
      group_id: null,
      outcome: 'begun',
      code: null,
    });
  }

  async function insertEffect({ operation, game_id, namespace_id, details }: EffectOnOther): Promise<void> {
    const create_ts = clock.now();
    const entry_id = Bun.randomUUIDv7('hex', create_ts);
    const scope = { game_id, namespace_id, group_id: null };
    await store.insertEntry(queries, {
      ...OF_ANOTHER_GAME,
      ...scope,
      entry_id,
      create_ts,
      operation,
      details,
      outcome: 'done',
      code: null,
    });
  }

  /** Records how a change ended. The caller is answered even if recording fails; the entry then stays `begun`. */
  async function end(entry_id: string, record: () => Promise<void>): Promise<void> {
    try {
      await record();
    } catch (cause) {
      events.emit({ event: 'audit_entry_not_completed', entry_id, cause });
    }
  }

  async function fail(entry_id: string, failure: unknown): Promise<void> {
    const { status, code } = toCallersError(failure);
    await end(entry_id, async () => {
      // A refused request has changed nothing.
      if (status < 500) await store.deleteEntry(queries, entry_id);
      else await store.updateEntry(queries, entry_id, { outcome: 'failed', code });
    });
  }

  const recorder: Audit = {
    async record(change, act, toDetails, toEffects = () => []) {
      const { entry_id } = change;
      await begin(change);
      try {
        const answer = await act();
        await end(entry_id, async () => {
          const details = toDetails(answer);
          const scope = await scopeOf(change, details);
          await store.updateEntry(queries, entry_id, { ...scope, details, outcome: 'done' });
          for (const effect of toEffects()) await insertEffect(effect);
        });
        return answer;
      } catch (failure) {
        await fail(entry_id, failure);
        throw failure;
      }
    },
  };

  async function list(filter: store.EntryFilter): Promise<AuditAnswer> {
    const rows = await store.selectEntries(queries, filter);
    const ids = rows.filter(({ caller_kind }) => caller_kind === 'identity').map(({ caller_id }) => caller_id);
    const people = await identities.list([...new Set(ids)]);
    const names = new Map(people.map(({ identity_id, display_name }) => [identity_id, display_name]));
    const last = rows.length === store.PAGE_ENTRIES ? rows.at(-1) : undefined;
    return { entries: rows.map((row) => toAuditEntry(row, names)), ...(last && { next: last.entry_id }) };
  }

  return {
    recorder,
    /** Returns a page of the changes of a game, newest first. */
    ofGame: (game_id: string, filter: Omit<store.EntryFilter, 'of'>) => list({ ...filter, of: { game_id } }),
    /** Returns a page of the changes of a group, for its members. Throws GROUP_NOT_FOUND or GROUP_NOT_MEMBER. */
    async ofGroup(caller: CallerOf<'identity'>, group_id: string, filter: Omit<store.EntryFilter, 'of'>) {
      await groups.get(group_id);
      if (!(await groups.mayActAsMember({ group_id, identity_id: caller.identity_id })))
        throw new ServiceError('GROUP_NOT_MEMBER', {});
      return await list({ ...filter, of: { group_id } });
    },
    /** Returns a page of all changes, for administrators. Throws IDENTITY_NOT_ADMIN. */
    async ofAll(caller: CallerOf<'identity'>, filter: Omit<store.EntryFilter, 'of'>) {
      await identities.requireAdministrator(caller);
      return await list({ ...filter, of: 'all' });
    },
    /** Starts the loop that deletes old entries. */
    startDeletingOld: (signal: AbortSignal) =>
      startDeletingOld({
        name: 'old-audit-entries',
        signal,
        events,
        deleteOld: async () =>
          audit_days === 0 ? 0 : await store.deleteEntriesBefore(queries, after(clock.now(), -audit_days * DAY_MS)),
      }),
  };
}

function toColumns(caller: AuditedCaller): Pick<AuditEntryRow, 'caller_kind' | 'caller_id' | 'token_issued_ts'> {
  const { kind: caller_kind } = caller;
  if (caller.kind === 'identity') return { caller_kind, caller_id: caller.identity_id, token_issued_ts: null };
  const caller_id = caller.kind === 'cloud' ? caller.game_id : caller.namespace_id;
  return { caller_kind, caller_id, token_issued_ts: new Date(caller.issued_at ?? 0) };
}

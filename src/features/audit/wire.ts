import { type Static, Type } from '@sinclair/typebox';
import { oneOf, Timestamp, Uuid } from '../../platform/http/shapes.ts';
import type { AuditEntryRow } from './tables.ts';
import { OUTCOMES } from './tables.ts';

const AuditCaller = Type.Object(
  {
    kind: oneOf('AuditCallerKind', ['identity', 'cloud', 'service', 'other_game'], {
      description:
        'A person, or the token of tools (cloud) or of a back end (service). other_game: someone of another game, whose name and address are not shown.',
    }),
    identity_id: Type.Optional(Uuid),
    display_name: Type.Optional(Type.String({ description: 'The name that the person has now.' })),
    token_issued_ts: Type.Optional(
      Type.String({ description: 'When the token was issued, which tells tokens apart. RFC 3339.' }),
    ),
  },
  { title: 'AuditCaller' },
);

const AuditDetail = Type.Union([Type.String(), Type.Number(), Type.Boolean()], { title: 'AuditDetail' });

const AuditEntry = Type.Object(
  {
    entry_id: Type.String({
      format: 'uuid',
      description: 'The ray id of the request. Of a change by another game, an id of its own.',
    }),
    create_ts: Timestamp,
    operation: Type.String({
      description:
        'The operation, as it is called in the API document. loseDomain: another game has proven that the domain is its own.',
    }),
    caller: AuditCaller,
    address: Type.String({ description: 'The address that the request came from. Empty if not shown.' }),
    user_agent: Type.Optional(Type.String()),
    game_id: Type.Optional(Uuid),
    namespace_id: Type.Optional(Uuid),
    group_id: Type.Optional(Uuid),
    details: Type.Record(Type.String(), AuditDetail, {
      description: 'What was changed: ids, names and settings. Never tokens, passwords or codes.',
    }),
    outcome: oneOf('AuditOutcome', OUTCOMES, {
      description:
        'begun: still under way, or the service stopped meanwhile. failed: the service was at fault; the change may have happened in part. Refused requests have no entry.',
    }),
    code: Type.Optional(Type.String({ description: 'The code of the error of a failed change.' })),
  },
  { title: 'AuditEntry' },
);

const Before = Type.Optional(
  Type.String({ format: 'uuid', description: 'Only entries before this one: pass `next` of the previous page.' }),
);
const IdentityId = Type.Optional(Type.String({ format: 'uuid', description: 'Only changes by this person.' }));

export const AuditQuery = Type.Object({ identity_id: IdentityId, before: Before });
export const GameAuditQuery = Type.Object({
  ...AuditQuery.properties,
  namespace_id: Type.Optional(Type.String({ format: 'uuid', description: 'Only changes of this namespace.' })),
});

export const AuditAnswer = Type.Object({
  entries: Type.Array(AuditEntry),
  next: Type.Optional(
    Type.String({
      description: 'Value of `before` for the next page, which may be empty. Absent if this page is not full.',
    }),
  ),
});
export type AuditAnswer = Static<typeof AuditAnswer>;

/** Returns an entry as on the wire. `names`: the names of people, by their ids. */
export function toAuditEntry(row: AuditEntryRow, names: ReadonlyMap<string, string>): AuditAnswer['entries'][number] {
  const { entry_id, create_ts, operation, caller_kind, caller_id, token_issued_ts, address, details, outcome } = row;
  const { user_agent, game_id, namespace_id, group_id, code } = row;
  const display_name = names.get(caller_id);
  return {
    entry_id,
    create_ts: create_ts.toISOString(),
    operation,
    caller: {
      kind: caller_kind,
      ...(caller_kind === 'identity' && { identity_id: caller_id }),
      ...(caller_kind === 'identity' && display_name !== undefined && { display_name }),
      ...(token_issued_ts && { token_issued_ts: token_issued_ts.toISOString() }),
    },
    address,
    ...(user_agent !== null && { user_agent }),
    ...(game_id !== null && { game_id }),
    ...(namespace_id !== null && { namespace_id }),
    ...(group_id !== null && { group_id }),
    details,
    outcome,
    ...(code !== null && { code }),
  };
}

import { route } from '../../platform/http/route.ts';
import type { AuditLog } from './audit.ts';
import { AuditAnswer, AuditQuery, GameAuditQuery } from './wire.ts';

export function auditRoutes(audit: AuditLog) {
  return [
    route(
      'GET',
      '/cloud/games/:game_id/audit-log',
      {
        operation: 'listGameChanges',
        summary:
          'Lists the changes of a game by people and tokens: who changed what, when and from where. Newest first.',
        allow: ['identity', 'cloud'],
        access: 'read',
        query: GameAuditQuery,
        response: AuditAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      async ({ params, query }) => await audit.ofGame(params.game_id, lowerCase(query)),
    ),
    route(
      'GET',
      '/group/groups/:group_id/audit-log',
      {
        operation: 'listGroupChanges',
        summary: 'Lists the changes of a group and its members, newest first. For members.',
        allow: ['identity'],
        query: AuditQuery,
        response: AuditAnswer,
        errors: ['GROUP_NOT_FOUND', 'GROUP_NOT_MEMBER'],
      },
      async ({ caller, params, query }) => await audit.ofGroup(caller, params.group_id, lowerCase(query)),
    ),
    route(
      'GET',
      '/cloud/audit-log',
      {
        operation: 'listChanges',
        summary:
          'Lists all changes by people and tokens, also those to machines and profiles, newest first. For administrators.',
        allow: ['identity'],
        query: AuditQuery,
        response: AuditAnswer,
        errors: ['IDENTITY_NOT_ADMIN'],
      },
      async ({ caller, query }) => await audit.ofAll(caller, lowerCase(query)),
    ),
  ];
}

function lowerCase<Query extends Record<string, string | undefined>>(query: Query): Query {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, value?.toLowerCase()])) as Query;
}

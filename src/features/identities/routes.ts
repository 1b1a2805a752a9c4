import { ServiceError } from '../../platform/errors.ts';
import { route } from '../../platform/http/route.ts';
import { Empty, isUuid, ValidationErrors, WatchQuery } from '../../platform/http/shapes.ts';
import { type CallerOf, nameCaller } from '../../platform/tokens/caller.ts';
import type { Watch, Watchable } from '../../platform/watch/watch.ts';
import { topics } from '../topics.ts';
import type { Identities } from './identities.ts';
import * as wire from './wire.ts';

const SELF = '/identity/identities/self';

interface IdentityRoutesDependencies extends wire.Addresses {
  identities: Identities;
  watch: Watch;
  /** The groups that a profile names, as others show them. */
  groupsOf(identity_id: string): Promise<unknown[]>;
  /** The game of a namespace; undefined when there is no such namespace. */
  gameOf(namespace_id: string): Promise<string | undefined>;
}

/** People as clients of games and tools see them. */
export function identityRoutes(dependencies: IdentityRoutesDependencies) {
  const { identities, watch, groupsOf, gameOf } = dependencies;

  const describe = async (identity_id: string) => {
    const [identity, groups] = await Promise.all([identities.get(identity_id), groupsOf(identity_id)]);
    return wire.toProfile(identity, groups, dependencies);
  };
  const profile: Watchable<string, wire.IdentityProfile> = { topic: topics.identity, read: describe };

  async function answerProfile(
    caller: CallerOf<'identity'>,
    identity_id: string,
    waiting: { watch_index?: string | undefined; signal: AbortSignal },
  ) {
    const { watch_index, signal } = waiting;
    const asking = { watch_index, signal, waiter: nameCaller(caller) };
    const { view, watch: seen } = await watch.answer(profile, identity_id, asking);
    return { identity: view, watch: seen };
  }

  return [
    route(
      'POST',
      '/identity/identities',
      {
        summary: 'Makes a guest of a game, or goes on with an identity that the client has a token of.',
        allow: ['public', 'development'],
        body: wire.SetupBody,
        response: wire.SetupAnswer,
        errors: ['NAMESPACE_NOT_FOUND', 'TOKEN_ERROR', 'IDENTITY_NOT_FOUND'],
      },
      async ({ caller, body }) => {
        const game_id = await gameOf(caller.namespace_id);
        if (game_id === undefined) throw new ServiceError('NAMESPACE_NOT_FOUND', {});
        const { identity_id, token, expire_ts } = await identities.setUp(body.existing_identity_token);
        return {
          identity_token: token,
          identity_token_expire_ts: expire_ts.toISOString(),
          identity: await describe(identity_id),
          game_id,
        };
      },
    ),
    route(
      'GET',
      `${SELF}/profile`,
      {
        summary: 'The caller himself.',
        allow: ['identity'],
        query: WatchQuery,
        response: wire.ProfileAnswer,
        errors: ['IDENTITY_NOT_FOUND', 'TOO_MANY_WATCHERS'],
      },
      async ({ caller, query, signal }) => await answerProfile(caller, caller.identity_id, { ...query, signal }),
    ),
    route(
      'POST',
      `${SELF}/profile`,
      {
        summary: 'Changes what others see of the caller.',
        allow: ['identity'],
        body: wire.ProfileBody,
        response: Empty,
        errors: ['IDENTITY_NOT_FOUND', 'VALIDATION_ERROR'],
      },
      async ({ caller, body }) => {
        await identities.updateProfile(caller.identity_id, body);
        return {};
      },
    ),
    route(
      'POST',
      `${SELF}/profile/validate`,
      {
        summary: 'Says what is wrong with a profile, without changing it.',
        allow: ['identity'],
        body: wire.ProfileBody,
        response: ValidationErrors,
      },
      async ({ body }) => ({ errors: identities.validateProfile(body) }),
    ),
    route(
      'POST',
      `${SELF}/delete-request`,
      {
        summary: 'Asks to be forgotten, 30 days from now.',
        allow: ['identity'],
        body: Empty,
        response: Empty,
        errors: ['IDENTITY_NOT_FOUND'],
      },
      async ({ caller }) => {
        await identities.requestDeletion(caller.identity_id);
        return {};
      },
    ),
    route(
      'DELETE',
      `${SELF}/delete-request`,
      {
        summary: 'Takes the wish to be forgotten back.',
        allow: ['identity'],
        response: Empty,
        errors: ['IDENTITY_NOT_FOUND'],
      },
      async ({ caller }) => {
        await identities.cancelDeletion(caller.identity_id);
        return {};
      },
    ),
    route(
      'GET',
      '/identity/identities/batch/handle',
      {
        summary: 'How others show several people.',
        allow: ['identity'],
        query: wire.BatchQuery,
        response: wire.HandlesAnswer,
      },
      async ({ query }) => {
        const rows = await identities.list(readIds(query.identity_ids));
        return { identities: rows.map((row) => wire.toHandle(row, dependencies)), watch: NOT_WATCHABLE };
      },
    ),
    route(
      'GET',
      '/identity/identities/batch/summary',
      {
        summary: 'The same, and how the caller stands to them.',
        allow: ['identity'],
        query: wire.BatchQuery,
        response: wire.SummariesAnswer,
      },
      async ({ query }) => {
        const rows = await identities.list(readIds(query.identity_ids));
        return { identities: rows.map((row) => wire.toSummary(row, dependencies)), watch: NOT_WATCHABLE };
      },
    ),
    route(
      'GET',
      '/identity/identities/:identity_id/profile',
      {
        summary: 'Somebody as others see him.',
        allow: ['identity'],
        query: WatchQuery,
        response: wire.ProfileAnswer,
        errors: ['IDENTITY_NOT_FOUND', 'TOO_MANY_WATCHERS'],
      },
      async ({ caller, params, query, signal }) =>
        await answerProfile(caller, params.identity_id, { ...query, signal }),
    ),
    route(
      'GET',
      '/identity/events/live',
      {
        summary: 'What happens to the caller: waits for the next change of his profile.',
        allow: ['identity'],
        query: WatchQuery,
        response: wire.EventsAnswer,
        errors: ['IDENTITY_NOT_FOUND', 'TOO_MANY_WATCHERS'],
      },
      async ({ caller, query, signal }) => {
        const { identity, watch: seen } = await answerProfile(caller, caller.identity_id, { ...query, signal });
        const has_changed = query.watch_index !== undefined && query.watch_index !== seen.index;
        const update = { ts: new Date().toISOString(), kind: { identity_update: { identity } } };
        return { events: has_changed ? [update] : [], watch: seen };
      },
    ),
  ];
}

/** A batch has no version of its own: its index is never waited for. */
const NOT_WATCHABLE = { index: '' };

function readIds(text: string): string[] {
  const ids = text.split(',').filter((id) => id !== '');
  if (ids.every(isUuid)) return [...new Set(ids.map((id) => id.toLowerCase()))];
  throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter: 'identity_ids', error: 'expected UUIDs' });
}

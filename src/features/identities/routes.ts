import { LRUCache } from 'lru-cache';
import type { Clock } from '../../platform/clock.ts';
import { ServiceError } from '../../platform/errors.ts';
import { route, watched } from '../../platform/http/route.ts';
import { Empty, isUuid, ValidationErrors } from '../../platform/http/shapes.ts';
import { type AppendOnlyLog, type Watchable, watchLog, watchState } from '../../platform/watch/views.ts';
import { topics } from '../topics.ts';
import type { Identities } from './identities.ts';
import * as wire from './wire.ts';

const SELF = '/identity/identities/self';
const MOMENTS_MAX = 10_000;
/** Maximum number of profiles that one request reads or watches. */
const BATCH_MAX = 64;

export interface IdentityRoutesDependencies extends wire.Addresses {
  identities: Identities;
  /** Returns the groups of a profile, as another identity sees them. */
  groupHandlesOf(identity_id: string, viewer_id: string): Promise<unknown[]>;
  clock: Clock;
  /** Returns the game of a namespace; undefined if the namespace does not exist. */
  gameOf(namespace_id: string): Promise<string | undefined>;
}

/** The profile of a person, as a viewer sees it. */
interface ViewedProfile {
  identity_id: string;
  viewer_id: string;
}

/** Routes for identities, for clients of games and for tools. */
export function identityRoutes(dependencies: IdentityRoutesDependencies) {
  const { identities, groupHandlesOf, gameOf, clock } = dependencies;

  /** Returns the profile of a person, as a viewer sees it. */
  const readProfile = async ({ identity_id, viewer_id }: ViewedProfile, { is_self }: { is_self: boolean }) => {
    const [identity, groups] = await Promise.all([identities.get(identity_id), groupHandlesOf(identity_id, viewer_id)]);
    return wire.toProfile(identity, { groups, is_self }, dependencies);
  };
  const readOwnProfile = (identity_id: string) =>
    readProfile({ identity_id, viewer_id: identity_id }, { is_self: true });
  const topicsOf = (identity_id: string) => [topics.identity(identity_id)];
  /** The profile of a person, as the person sees it. */
  const own_profile: Watchable<string, wire.IdentityProfile> = { topics: topicsOf, read: readOwnProfile };
  /** As another person sees it. */
  const profile: Watchable<ViewedProfile, wire.IdentityProfile> = {
    // A change of the viewer's groups may change the closed ones of the person that the viewer sees.
    topics: ({ identity_id, viewer_id }) => [topics.identity(identity_id), topics.identity(viewer_id)],
    read: (viewed) => readProfile(viewed, { is_self: false }),
  };
  /** When each change was first sent, so that repeated answers show the same time. */
  const moments = new LRUCache<string, string>({ max: MOMENTS_MAX });
  function momentOf(change: string): string {
    const moment = moments.get(change) ?? clock.now().toISOString();
    moments.set(change, moment);
    return moment;
  }
  /** Events of an identity: its profile, after each change. */
  const events: AppendOnlyLog<string, wire.IdentityEvent[]> = {
    topics: topicsOf,
    last: async (identity_id) => ({ content: [], next: await identities.changesOf(identity_id) }),
    async from(identity_id, number) {
      const next = await identities.changesOf(identity_id);
      if (next <= number) return { content: [], next: number };
      const identity = await readOwnProfile(identity_id);
      return { content: [{ ts: momentOf(`${identity_id} ${next}`), kind: { identity_update: { identity } } }], next };
    },
  };

  return [
    route(
      'POST',
      '/identity/identities',
      {
        operation: 'setUpIdentity',
        summary: "Creates a guest of a game, or continues with the identity of the client's token.",
        allow: ['public', 'development'],
        body: wire.SetupBody,
        response: wire.SetupAnswer,
        errors: ['NAMESPACE_NOT_FOUND', 'IDENTITY_NOT_FOUND'],
      },
      async ({ caller, body }) => {
        const game_id = await gameOf(caller.namespace_id);
        if (game_id === undefined) throw new ServiceError('NAMESPACE_NOT_FOUND', {});
        const { identity_id, token, expire_ts } = await identities.setUp(
          caller.namespace_id,
          body.existing_identity_token,
        );
        return {
          identity_token: token,
          identity_token_expire_ts: expire_ts.toISOString(),
          identity: await readOwnProfile(identity_id),
          game_id,
        };
      },
    ),
    watched(
      `${SELF}/profile`,
      {
        operation: 'getSelfProfile',
        summary: "Returns the caller's own profile.",
        allow: ['identity'],
        response: wire.ProfileAnswer,
        errors: ['IDENTITY_NOT_FOUND'],
      },
      ({ caller }) => watchState(own_profile, caller.identity_id, (identity) => ({ identity })),
    ),
    route(
      'POST',
      `${SELF}/profile`,
      {
        operation: 'updateSelfProfile',
        summary: "Changes the caller's profile.",
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
        operation: 'validateSelfProfile',
        is_change: false,
        summary: 'Checks a profile without changing it.',
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
        operation: 'requestDeletion',
        summary: 'Schedules the deletion of the caller in 30 days.',
        allow: ['identity'],
        body: Empty,
        response: Empty,
        errors: ['IDENTITY_NOT_FOUND', 'API_FORBIDDEN'],
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
        operation: 'cancelDeletion',
        summary: 'Cancels the deletion of the caller.',
        allow: ['identity'],
        response: Empty,
        errors: ['IDENTITY_NOT_FOUND'],
      },
      async ({ caller }) => {
        await identities.cancelDeletion(caller.identity_id);
        return {};
      },
    ),
    watched(
      '/identity/identities/batch/handle',
      {
        operation: 'listIdentityHandles',
        summary: 'Returns the public profiles of several people.',
        allow: ['identity'],
        query: wire.BatchQuery,
        response: wire.HandlesAnswer,
      },
      ({ query }) =>
        watchState(identities.people, readIds(query.identity_ids), (rows) => ({
          identities: rows.map((row) => wire.toHandle(row, dependencies)),
        })),
    ),
    watched(
      '/identity/identities/batch/summary',
      {
        operation: 'listIdentitySummaries',
        summary: 'Returns the profiles of several people, with their relation to the caller.',
        allow: ['identity'],
        query: wire.BatchQuery,
        response: wire.SummariesAnswer,
      },
      ({ query }) =>
        watchState(identities.people, readIds(query.identity_ids), (rows) => ({
          identities: rows.map((row) => wire.toSummary(row, dependencies)),
        })),
    ),
    watched(
      '/identity/identities/:identity_id/profile',
      {
        operation: 'getIdentityProfile',
        summary: "Returns a person's profile as others see it.",
        allow: ['identity'],
        response: wire.ProfileAnswer,
        errors: ['IDENTITY_NOT_FOUND'],
      },
      ({ caller, params }) =>
        watchState(profile, { ...params, viewer_id: caller.identity_id }, (identity) => ({ identity })),
    ),
    watched(
      '/identity/events/live',
      {
        operation: 'watchIdentityEvents',
        summary: "Returns the caller's events: the profile, after each change.",
        allow: ['identity'],
        response: wire.EventsAnswer,
        errors: ['IDENTITY_NOT_FOUND'],
      },
      ({ caller }) => watchLog(events, caller.identity_id, (happened) => ({ events: happened })),
    ),
  ];
}

function readIds(text: string): string[] {
  const ids = new Set(text.toLowerCase().split(','));
  ids.delete('');
  if (ids.size > BATCH_MAX) throw badIds(`expected at most ${BATCH_MAX} ids`);
  if (![...ids].every(isUuid)) throw badIds('expected UUIDs');
  return [...ids];
}

function badIds(error: string): ServiceError {
  return new ServiceError('API_BAD_QUERY_PARAMETER', { parameter: 'identity_ids', error });
}

import type { Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Call } from '../../platform/http/call.ts';
import { type Route, route } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import type { Transfers } from '../../platform/http/transfers.ts';
import { averagePerMinute } from '../../platform/limits/limit.ts';
import type { Games } from '../games/games.ts';
import type { Groups } from '../groups/groups.ts';
import type { Identities } from '../identities/identities.ts';
import type { Media, PictureKind } from './media.ts';
import * as wire from './wire.ts';

const UPLOAD_ERRORS = [
  'UPLOAD_NOT_FOUND',
  'UPLOAD_INCOMPLETE',
  'UPLOAD_INVALID',
  'UPLOAD_BUSY',
  'OBJECTS_UNAVAILABLE',
] as const;
const PREPARE_ERRORS = ['UPLOAD_INVALID', 'UPLOAD_TOO_LARGE', 'UPLOAD_QUOTA_REACHED'] as const;

/** Limits pictures by address too, because a client can create new identities at no cost. */
const BY_ADDRESS = averagePerMinute('pictures', 4, { by: 'address' });

const HOUR_S = 3_600;
const YEAR_S = 365 * 24 * HOUR_S;

/** The kind of picture for each path. */
const KINDS_BY_PATH: Record<string, PictureKind> = {
  'user-avatar': 'identity_avatar',
  'team-avatar': 'group_avatar',
  'game-logo': 'game_logo',
  'game-banner': 'game_banner',
  'custom-avatar': 'custom_avatar',
};

export interface MediaRoutesDependencies {
  media: Media;
  games: Games;
  groups: Groups;
  identities: Identities;
  public_url: string;
  transfers: Transfers;
}

export function mediaRoutes(dependencies: MediaRoutesDependencies) {
  return [...showRoutes(dependencies), ...gameRoutes(dependencies), ...peopleRoutes(dependencies)];
}

/** The part of a call that a download needs. */
type Downloading = Pick<Call<unknown, unknown, unknown, unknown>, 'address' | 'request'>;

/** Routes that show pictures to browsers. A new picture has a new address, so that each can be cached for long. */
function showRoutes({ media, transfers }: MediaRoutesDependencies) {
  const options = {
    summary: 'Returns a picture.',
    allow: 'anyone',
    is_page: true,
    errors: ['API_NOT_FOUND', 'UPLOAD_NOT_FOUND', 'OBJECTS_UNAVAILABLE', 'TOO_MANY_TRANSFERS', 'TRANSFERS_BUSY'],
  } as const;
  async function show(kind: PictureKind | undefined, upload_id: string, call: Downloading): Promise<Response> {
    if (!kind) throw new ServiceError('API_NOT_FOUND', {});
    let type = '';
    const content = await transfers.download(call.address, call.request.signal, async () => {
      const found = await media.read(kind, upload_id);
      type = found.type;
      return found.content;
    });
    // Shared caches must not show the pictures of deleted identities for long.
    const max_age_s = kind === 'identity_avatar' ? HOUR_S : YEAR_S;
    return picture(content, type, `public, max-age=${max_age_s}, immutable`);
  }
  return [
    route(
      'GET',
      '/media/default-avatar.svg',
      { ...options, summary: 'Returns the picture of people who have uploaded none.' },
      async () => picture(DEFAULT_AVATAR, 'image/svg+xml', 'public, max-age=86400'),
    ),
    route('GET', '/media/:kind/:upload_id', { ...options, free_params: ['kind'] }, async (call) =>
      show(KINDS_BY_PATH[call.params.kind], call.params.upload_id, call),
    ),
    // The reference API appends the name of the file.
    route('GET', '/media/:kind/:upload_id/:file', { ...options, free_params: ['kind', 'file'] }, async (call) =>
      show(KINDS_BY_PATH[call.params.kind], call.params.upload_id, call),
    ),
  ];
}

/** Routes for the logo, banner and avatars of a game. */
function gameRoutes({ media, games, public_url }: MediaRoutesDependencies): Route[] {
  const pictures = [
    {
      kind: 'game_logo',
      noun: 'GameLogo',
      prepare: 'logo-upload/prepare',
      upload: 'logo-upload',
      what: 'the logo of a game',
    },
    {
      kind: 'game_banner',
      noun: 'GameBanner',
      prepare: 'banner-upload/prepare',
      upload: 'banner-upload',
      what: 'the banner of a game',
    },
    {
      kind: 'custom_avatar',
      noun: 'GameAvatar',
      prepare: 'avatar-upload/prepare',
      upload: 'avatar-upload',
      what: 'an avatar of a game',
    },
  ] as const;
  const preparing = ({
    kind,
    operation,
    path,
    what,
  }: {
    kind: PictureKind;
    operation: string;
    path: string;
    what: string;
  }) =>
    route(
      'POST',
      `/cloud/games/:game_id/${path}`,
      {
        operation,
        summary: `Prepares the upload of ${what}.`,
        allow: ['identity', 'cloud'],
        access: 'write',
        body: wire.PreparePictureBody,
        response: wire.PreparePictureAnswer,
        errors: ['GAME_NOT_FOUND', ...PREPARE_ERRORS],
      },
      async ({ params, body }) => await media.prepare(kind, { game_id: params.game_id }, body),
    );
  const completing = ({ kind, noun, upload, what }: (typeof pictures)[number]) =>
    route(
      'POST',
      `/cloud/games/:game_id/${upload}/:upload_id/complete`,
      {
        operation: `complete${noun}`,
        summary: `Completes the upload of ${what}.`,
        allow: ['identity', 'cloud'],
        access: 'write',
        body: Empty,
        response: Empty,
        errors: ['GAME_NOT_FOUND', ...UPLOAD_ERRORS],
      },
      async ({ params: { game_id, upload_id } }) => {
        const shows = {
          custom_avatar: undefined,
          game_logo: (tx: Tx) => games.setPicture(tx, game_id, 'logo_upload_id', upload_id),
          game_banner: (tx: Tx) => games.setPicture(tx, game_id, 'banner_upload_id', upload_id),
        };
        await media.complete(kind, { game_id }, upload_id, shows[kind]);
        return {};
      },
    );
  return [
    ...pictures.map(({ kind, noun, prepare, what }) =>
      preparing({ kind, operation: `prepare${noun}`, path: prepare, what }),
    ),
    // The specification has another path for avatars.
    preparing({
      kind: 'custom_avatar',
      operation: 'prepareCustomAvatar',
      path: 'prepare',
      what: 'an avatar of a game',
    }),
    ...pictures.map(completing),
    route(
      'GET',
      '/cloud/games/:game_id/avatars',
      {
        operation: 'listGameAvatars',
        summary: "Lists the avatars that a game's players may choose from, newest first.",
        allow: ['identity', 'cloud'],
        access: 'read',
        response: wire.CustomAvatarsAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      async ({ params }) => {
        const avatars = await media.customAvatars(params.game_id);
        return { custom_avatars: avatars.map((avatar) => wire.toCustomAvatar(avatar, public_url)) };
      },
    ),
  ];
}

/** Routes for the avatars of people and groups. */
function peopleRoutes({ media, groups, identities }: MediaRoutesDependencies) {
  const preparing = {
    allow: ['identity'],
    address_limit: BY_ADDRESS,
    body: wire.PreparePictureBody,
    response: wire.PreparePictureAnswer,
    errors: [...PREPARE_ERRORS, 'IDENTITY_NOT_FOUND'],
  } as const;
  const completing = { allow: ['identity'], body: Empty, response: Empty } as const;
  return [
    route(
      'POST',
      '/identity/identities/avatar-upload/prepare',
      { operation: 'prepareIdentityAvatar', ...preparing, summary: "Prepares the upload of the caller's picture." },
      async ({ caller, body }) => await media.prepare('identity_avatar', { identity_id: caller.identity_id }, body),
    ),
    route(
      'POST',
      '/identity/identities/avatar-upload/:upload_id/complete',
      {
        operation: 'completeIdentityAvatar',
        ...completing,
        summary: "Completes the upload of the caller's picture.",
        errors: [...UPLOAD_ERRORS, 'IDENTITY_NOT_FOUND'],
      },
      async ({ caller: { identity_id }, params: { upload_id } }) => {
        const show = (tx: Tx) => identities.setAvatar(tx, identity_id, upload_id);
        await media.complete('identity_avatar', { identity_id }, upload_id, show);
        return {};
      },
    ),
    route(
      'POST',
      '/group/groups/avatar-upload/prepare',
      { operation: 'prepareGroupAvatar', ...preparing, summary: "Prepares the upload of a group's picture." },
      async ({ caller, body }) => await media.prepare('group_avatar', { identity_id: caller.identity_id }, body),
    ),
    route(
      'POST',
      '/group/groups/:group_id/avatar-upload/:upload_id/complete',
      {
        operation: 'completeGroupAvatar',
        ...completing,
        summary: "Completes the upload of a group's picture. For the owner.",
        errors: [...UPLOAD_ERRORS, 'GROUP_NOT_FOUND', 'GROUP_INSUFFICIENT_PERMISSIONS'],
      },
      async ({ caller: { identity_id }, params: { group_id, upload_id } }) => {
        await groups.requireOwner({ group_id, identity_id });
        const show = (tx: Tx) => groups.setAvatar(tx, { group_id, identity_id }, upload_id);
        await media.complete('group_avatar', { identity_id }, upload_id, show);
        return {};
      },
    ),
  ];
}

function picture(content: ReadableStream<Uint8Array> | string, type: string, cache_control: string): Response {
  return new Response(content, {
    headers: {
      'content-type': type,
      'cache-control': cache_control,
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    },
  });
}

const DEFAULT_AVATAR = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" fill="#cfd8e3"/><circle cx="32" cy="25" r="11" fill="#8595a8"/><path d="M10 60c2-14 11-20 22-20s20 6 22 20z" fill="#8595a8"/></svg>`;

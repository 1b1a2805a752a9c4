/** One kind of failure that a caller may meet. */
export interface CatalogueEntry {
  /** HTTP status: one of those that the field's clients sort by. */
  status: 400 | 401 | 403 | 404 | 413 | 429 | 500 | 503;
  /** What is wrong, then what to do. `{name}` stands for a parameter. */
  message: string;
}

/**
 * Every error the service answers with. Codes are the field's where it has one (field-behaviour 3.3); whatever ends in
 * NOT_FOUND is a 404, and a 409 is never used because clients retry it. `docs/errors.md` is made from this list.
 */
export const CATALOGUE = {
  API_BAD_BODY: { status: 400, message: 'The request body is not as expected: {error}.' },
  API_BAD_HOST: { status: 400, message: 'The request has no usable Host header. Send the name of the service in it.' },
  API_BAD_QUERY_PARAMETER: { status: 400, message: 'The query parameter "{parameter}" is not as expected: {error}.' },
  API_BODY_TIMEOUT: { status: 400, message: 'The body did not arrive within {timeout_ms} ms. Send it faster.' },
  API_BODY_TOO_LARGE: { status: 413, message: 'The request body is larger than {limit_bytes} bytes. Send less.' },
  API_CORS_ORIGIN_NOT_ALLOWED: {
    status: 403,
    message: 'Pages of this origin may not call this path from a browser. Call it from a server, or from {origins}.',
  },
  API_FORBIDDEN: { status: 403, message: 'This is not allowed: {reason}.' },
  API_METHOD_NOT_ALLOWED: {
    status: 400,
    message: 'The path exists, but not for the method {method}. It takes {allowed_methods}.',
  },
  API_MISSING_HEADER: { status: 400, message: 'The header "{header}" is missing. Send it.' },
  API_NOT_FOUND: { status: 404, message: 'There is nothing at this path. Check its spelling and that ids are UUIDs.' },
  API_RATE_LIMIT: {
    status: 429,
    message: 'That was more than {limit} requests of this kind. Try again in {retry_after_s} s.',
  },
  API_REQUEST_TIMEOUT: {
    status: 503,
    message: 'The answer was not ready within {timeout_ms} ms. Try again.',
  },
  API_UNAUTHORIZED: {
    status: 401,
    message: 'This needs a token. Send the header "Authorization: Bearer <token>".',
  },
  BUILDS_BUILD_INVALID: { status: 400, message: 'The build cannot be used: {error}.' },
  BUILDS_BUILD_NOT_COMPLETE: {
    status: 400,
    message: 'The build is not complete. Upload its file and complete it first.',
  },
  BUILDS_BUILD_NOT_FOUND: { status: 404, message: 'There is no such build in this game or environment.' },
  BUILDS_KIND_NOT_AVAILABLE: {
    status: 400,
    message: 'No runtime of this service can run builds of kind "{kind}". It can run: {kinds}.',
  },
  BUILDS_TAGS_MISSING_EXCLUSIVE_KEY: {
    status: 400,
    message: 'The exclusive tag "{key}" is not among the tags. Give it a value in "tags".',
  },
  BUILDS_TAGS_NULL_EXCLUSIVE_KEY: { status: 400, message: 'The exclusive tag "{key}" is null. Give it a value.' },
  CAPTCHA_CAPTCHA_FAILED: { status: 400, message: 'The captcha does not count: {reason}. Solve a new one.' },
  CAPTCHA_CAPTCHA_REQUIRED: {
    status: 403,
    message: 'A captcha is needed. Let the player solve the one that metadata names, and send its answer as captcha.',
  },
  CAPTCHA_CAPTCHA_UNAVAILABLE: {
    status: 503,
    message: 'It cannot be seen at the moment whether the captcha was solved. Solve a new one and try again.',
  },
  CAPTCHA_WORK_NOT_USED: {
    status: 400,
    message: "The namespace's current version asks for no proof of work. Its matchmaker.captcha.pow would.",
  },
  CDN_BUSY: {
    status: 503,
    message: 'Too many passwords of sites are being compared at the moment. Try again in a few seconds.',
  },
  CDN_DOMAIN_NOT_CHECKED: {
    status: 503,
    message: 'No name server answered for {name}, so it is not known whether the domain is yours. Try again.',
  },
  CDN_DOMAIN_NOT_PROVEN: {
    status: 400,
    message:
      'The domain is not proven to be yours. Add the DNS record {name} of type {type} with the text {value}, and add the domain again once the record is published.',
  },
  CDN_INVALID_AUTH_USER_PASSWORD: {
    status: 400,
    message: 'The password must be a bcrypt hash of cost 4 to 12, like $2b$10$ and 53 characters. Hash it first.',
  },
  CDN_INVALID_DOMAIN: {
    status: 400,
    message:
      "No site can have this domain. Write it like play.example.com, without scheme and port, and choose none of this service's own names.",
  },
  CDN_TOO_MANY_AUTH_USERS: { status: 400, message: 'A namespace may have {max} users. Remove one first.' },
  CDN_TOO_MANY_DOMAINS: { status: 400, message: 'A namespace may have {max} domains. Remove one first.' },
  CLAIMS_ENTITLEMENT_EXPIRED: { status: 401, message: 'The token has expired. Get a new one.' },
  CLAIMS_MISSING_ENTITLEMENT: {
    status: 401,
    message: 'This is not for tokens of this kind. Use one of: {entitlements}.',
  },
  CLOUD_DEVICE_LINK_ALREADY_COMPLETE: {
    status: 400,
    message: 'The device link has been completed already. Prepare a new one.',
  },
  CLOUD_HOSTNAME_TAKEN: {
    status: 400,
    message:
      'Another namespace has this domain. If it is yours, add the DNS record {name} of type {type} with the text {value}, and add the domain again once the record is published.',
  },
  CLOUD_INVALID_CONFIG: { status: 400, message: 'The configuration cannot be used: {error}.' },
  CLUSTER_DATACENTER_NOT_FOUND: { status: 404, message: 'There is no such datacenter. List them to see which exist.' },
  DATABASE_BUSY: { status: 503, message: 'The database is too busy to answer in time. Try again.' },
  DATABASE_UNAVAILABLE: { status: 503, message: 'The database cannot be reached at the moment. Try again.' },
  ERROR: { status: 500, message: 'Something went wrong on our side. Tell the host the ray id of this answer.' },
  FEATURE_DISABLED: { status: 400, message: 'This release cannot do that yet: {feature}.' },
  GAME_ENVIRONMENT_NOT_FOUND: { status: 404, message: 'There is no such environment (namespace) in this game.' },
  GAME_NOT_FOUND: { status: 404, message: 'There is no such game, or it is not yours.' },
  GROUP_ALREADY_MEMBER: { status: 400, message: 'This person is a member of the group already.' },
  GROUP_CANNOT_REQUEST_JOIN: { status: 400, message: 'The group is closed. Ask a member for an invite.' },
  GROUP_FULL: { status: 400, message: 'The group has {max} members, which is the most.' },
  GROUP_INSUFFICIENT_PERMISSIONS: { status: 403, message: "Only the group's owner may do this." },
  GROUP_INVITE_CODE_ALREADY_USED: { status: 400, message: 'The invite has been used up. Ask for another one.' },
  GROUP_INVITE_CODE_EXPIRED: { status: 400, message: 'The invite has expired. Ask for another one.' },
  GROUP_INVITE_CODE_INVALID: { status: 400, message: 'There is no such invite. Check the code.' },
  GROUP_JOIN_REQUEST_ALREADY_EXISTS: { status: 400, message: 'The group has been asked already. Wait for its owner.' },
  GROUP_MEMBER_BANNED: { status: 400, message: 'This person may not be a member of the group.' },
  GROUP_NOT_FOUND: { status: 404, message: 'There is no such group, or you are not a member.' },
  GROUP_NOT_MEMBER: { status: 403, message: 'This is for members of the group.' },
  IDENTITY_NOT_ADMIN: { status: 403, message: 'Only an administrator may do this.' },
  IDENTITY_NOT_FOUND: { status: 404, message: 'There is no such identity.' },
  LIMITS_UNAVAILABLE: {
    status: 503,
    message: 'It cannot be counted at the moment how often this was done, so it is not done. Try again.',
  },
  LINK_INVALID: { status: 403, message: 'The link was altered or has expired. Ask for a new one.' },
  MATCHMAKER_AUTO_CREATE_FAILED: {
    status: 400,
    message: 'None of the game modes asked for is offered in any of the regions asked for.',
  },
  MATCHMAKER_CUSTOM_LOBBIES_DISABLED: {
    status: 400,
    message: 'The game mode does not let players create lobbies. Its actions.create would.',
  },
  MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID: { status: 400, message: 'The lobby cannot be created: {reason}.' },
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED: {
    status: 400,
    message: 'The game mode "{game_mode}" does not let players choose a maximum. Leave out max_players.',
  },
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID: {
    status: 400,
    message: 'In the game mode "{game_mode}", max_players must be from 1 to {max}.',
  },
  MATCHMAKER_FIND_DISABLED: { status: 400, message: 'The game mode does not allow find.' },
  MATCHMAKER_GAME_MODE_NOT_FOUND: {
    status: 404,
    message: 'The namespace\'s current version has no game mode "{game_mode}".',
  },
  MATCHMAKER_IDENTITY_REQUIRED: {
    status: 400,
    message:
      'The game mode asks for an identity, which matchmaking requests cannot carry. Set identity_requirement to none.',
  },
  MATCHMAKER_JOIN_DISABLED: { status: 400, message: 'The game mode does not allow join.' },
  MATCHMAKER_LOBBY_FULL: { status: 400, message: 'The lobby is full.' },
  MATCHMAKER_LOBBY_NOT_FOUND: { status: 404, message: 'There is no such lobby.' },
  MATCHMAKER_LOBBY_NOT_READY: { status: 503, message: 'The lobby was not ready within {timeout_ms} ms: {reason}.' },
  MATCHMAKER_LOBBY_STOPPED: { status: 400, message: 'The lobby has stopped: {reason}.' },
  MATCHMAKER_NO_AVAILABLE_LOBBIES: {
    status: 400,
    message: 'No open lobby has a place, and creating one was not wanted (prevent_auto_create_lobby).',
  },
  MATCHMAKER_NO_GAME_MODE_PROVIDED: { status: 400, message: 'Name at least one game mode in game_modes.' },
  MATCHMAKER_PARTY_TOO_LARGE: { status: 400, message: 'At most {max} players can come together here. Split up.' },
  MATCHMAKER_PLAYER_ALREADY_CONNECTED: {
    status: 400,
    message: 'This player token has been used. A token connects one player once.',
  },
  MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY: { status: 400, message: 'The player has his seat in another lobby.' },
  MATCHMAKER_PLAYER_REGISTRATION_EXPIRED: {
    status: 400,
    message: 'The player did not connect in time; his seat was given up. He must find a lobby again.',
  },
  MATCHMAKER_PLAYER_REMOVED: { status: 400, message: 'The player has left or was removed from the lobby.' },
  MATCHMAKER_QUEUE_FULL: {
    status: 503,
    message: 'As many finds as may wait for a lobby in this namespace ({max}) do so already. Try again in a moment.',
  },
  MATCHMAKER_RECEIPT_NOT_FOUND: {
    status: 404,
    message: 'There is no receipt of such a request: it was not kept, or is more than an hour old.',
  },
  MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE: {
    status: 400,
    message: 'The game mode "{game_mode}" is not offered in the region "{region}".',
  },
  MATCHMAKER_REGION_NOT_FOUND: { status: 404, message: 'There is no region "{region}".' },
  MATCHMAKER_TAGS_DISABLED: { status: 400, message: 'The game mode "{game_mode}" does not take tags.' },
  MATCHMAKER_TAG_NAME_TOO_LONG: { status: 400, message: "A tag's name may have at most {max} bytes." },
  MATCHMAKER_TAG_TOO_LONG: { status: 400, message: "A tag's value may have at most {max} bytes." },
  MATCHMAKER_TICKET_TAKEN: {
    status: 400,
    message: 'A find with this ticket is waiting already. Make a new UUID for each find.',
  },
  MATCHMAKER_TOO_MANY_LOBBIES: {
    status: 400,
    message:
      'The namespace has as many lobbies as its lobby_count_max allows, and no place is free for those who come last. Raise it, or wait (wait_ms of find).',
  },
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: {
    status: 400,
    message:
      'Your address may have {max} players in this namespace at one time, and has as many or would have more. Let some leave, or raise max_players_per_client of the namespace.',
  },
  MATCHMAKER_TOO_MANY_TAGS: { status: 400, message: 'At most {max} tags may be given.' },
  MATCHMAKER_VERIFICATION_FAILED: {
    status: 400,
    message: "The game's own server, which verifies players, refuses this one.",
  },
  MATCHMAKER_VERIFICATION_REQUEST_FAILED: {
    status: 400,
    message: "The game's own server, which verifies players, could not be asked or did not answer in time. Try again.",
  },
  NAMESPACE_NOT_FOUND: { status: 404, message: 'There is no such namespace in this game.' },
  OBJECTS_UNAVAILABLE: { status: 503, message: 'The object storage cannot be used at the moment. Try again.' },
  SERVERS_MUST_SPECIFY_ROUTING_TYPE: {
    status: 400,
    message: 'The routing of port "{port}" must have exactly one of game_guard and host.',
  },
  SERVERS_NO_PORTS: { status: 503, message: 'This machine has no free game server port left. Try again.' },
  SERVERS_SERVER_FAILED_TO_CREATE: { status: 400, message: 'The server cannot be created: {error}.' },
  SERVERS_SERVER_NOT_FOUND: { status: 404, message: 'There is no such server in this environment.' },
  SERVERS_UNSUPPORTED_HOST_PROTOCOL: {
    status: 400,
    message: 'The port "{port}" is routed by host, which only tcp and udp can be.',
  },
  SERVICE_NOT_READY: { status: 503, message: 'The service cannot do its work at the moment: {reasons}.' },
  SERVICE_STOPPING: { status: 503, message: 'The service is stopping. Try again in a moment.' },
  STORAGE_FULL: {
    status: 503,
    message: "The service's disk is full. Try again when its operator has freed space.",
  },
  TOKEN_ERROR: { status: 400, message: 'A token within the request cannot be used: {reason}. Get a new one.' },
  TOKEN_INVALID: { status: 401, message: 'The token cannot be read or was not signed by this service.' },
  TOKEN_REFRESH_NOT_FOUND: { status: 403, message: 'The refresh token is not known here. Log in again.' },
  TOKEN_REVOKED: { status: 403, message: 'The token was used or taken back. Log in again, or have a new one made.' },
  TOO_MANY_SOCKETS: { status: 429, message: 'Too many WebSockets of this caller, or in all, are open. Close some.' },
  TOO_MANY_TRANSFERS: { status: 429, message: 'This address has {limit} downloads and uploads under way. End some.' },
  TOO_MANY_WATCHERS: { status: 429, message: 'Too many requests of this caller are waiting for a change. Close some.' },
  TRANSFERS_BUSY: { status: 503, message: 'The service has too many downloads and uploads under way. Try again.' },
  UPLOAD_BUSY: { status: 503, message: 'The upload is being completed by another request. Ask again in a moment.' },
  UPLOAD_INCOMPLETE: {
    status: 400,
    message: 'The upload has not arrived in full: {error}. Send the missing parts, then complete it.',
  },
  UPLOAD_INVALID: { status: 400, message: 'The upload is refused: {error}.' },
  UPLOAD_LENGTH_MISMATCH: {
    status: 400,
    message: 'Expected {expected_bytes} bytes, as was said when the upload was prepared. Send exactly these.',
  },
  UPLOAD_NOT_FOUND: { status: 404, message: 'There is no such upload.' },
  UPLOAD_QUOTA_REACHED: {
    status: 429,
    message:
      'The pictures of this game, namespace or person have reached their quota of {quota}. The operator can raise it.',
  },
  UPLOAD_SIGNATURE_INVALID: {
    status: 403,
    message: 'The upload address was altered or has expired. Prepare the upload again for a new one.',
  },
  UPLOAD_TOO_LARGE: {
    status: 400,
    message: 'The upload is larger than {max_content_length} bytes, which is the most.',
  },
  VALIDATION_ERROR: { status: 400, message: 'The request has invalid content: {error}.' },
  VERSION_NOT_FOUND: { status: 404, message: 'There is no such version in this game.' },
  WATCH_BAD_FRAME: { status: 400, message: 'The frame is not as expected: {error}.' },
  WATCH_NOT_WATCHABLE: {
    status: 400,
    message: 'The path exists, but it cannot be watched. Those that can have the query parameter watch_index.',
  },
  WATCH_SUBPROTOCOL_REQUIRED: {
    status: 400,
    message: 'The WebSocket does not offer the subprotocol muster.watch.v1. Offer it (docs/watch.md).',
  },
  WATCH_TOO_MANY_FRAMES: {
    status: 429,
    message: 'The client sends more than {limit} frames a second. Send less, after a pause.',
  },
  WATCH_UPGRADE_REQUIRED: { status: 400, message: 'This path speaks WebSocket. Ask for an upgrade of the connection.' },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof CATALOGUE;

type ParametersIn<Message extends string> = Message extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParametersIn<Rest>
  : never;

/** The parameters that a code's message names. */
export type ErrorParameters<Code extends ErrorCode> = Record<
  ParametersIn<(typeof CATALOGUE)[Code]['message']>,
  string | number
>;

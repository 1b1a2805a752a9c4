/** One kind of failure. */
export interface CatalogueEntry {
  /** HTTP status: one of those that clients of the reference API distinguish, or 426 for the version of a WebSocket. */
  status: 400 | 401 | 403 | 404 | 413 | 426 | 429 | 500 | 503;
  /**
   * What is wrong, then what to do. `{name}` stands for a parameter. If a message ends with `{error}` or `{reason}`, that
   * parameter says what to do, unless this follows from what is wrong.
   */
  message: string;
}

/**
 * Every error of the service. Codes follow the reference API where it has one. A code that ends in NOT_FOUND is a 404.
 * No error is a 409, because clients retry it. `docs/errors.md` is generated from this list.
 */
export const CATALOGUE = {
  API_BAD_BODY: { status: 400, message: 'The request body is invalid: {error}.' },
  API_BAD_HOST: {
    status: 400,
    message: "The request's Host header is missing or invalid. Send the service's host name.",
  },
  API_BAD_QUERY_PARAMETER: { status: 400, message: 'The query parameter "{parameter}" is invalid: {error}.' },
  API_BAD_SOCKET_HANDSHAKE: { status: 400, message: 'The WebSocket handshake is invalid: {error}.' },
  API_BODY_TIMEOUT: { status: 400, message: 'The request body did not arrive within {timeout_ms} ms. Send it faster.' },
  API_BODY_TOO_LARGE: {
    status: 413,
    message: 'The request body is larger than {limit_bytes} bytes. Send a smaller one.',
  },
  API_CLIENT_GONE: {
    status: 400,
    message: 'The client closed the connection before the answer. Send the request again.',
  },
  API_CORS_ORIGIN_NOT_ALLOWED: {
    status: 403,
    message: 'Browsers may not call this path from this origin. Call it from a server, or from {origins}.',
  },
  API_FORBIDDEN: { status: 403, message: 'This request is not allowed: {reason}.' },
  API_METHOD_NOT_ALLOWED: {
    status: 400,
    message: 'This path does not support the method {method}. Use one of: {allowed_methods}.',
  },
  API_MISSING_HEADER: { status: 400, message: 'The header "{header}" is missing. Send it.' },
  API_NOT_FOUND: { status: 404, message: 'No route matches this path. Check its spelling, and that ids are UUIDs.' },
  API_RATE_LIMIT: {
    status: 429,
    message: 'The limit of {limit} requests of this kind is exceeded. Try again in {retry_after_s} s.',
  },
  API_REQUEST_TIMEOUT: { status: 503, message: 'The request was not answered within {timeout_ms} ms. Try again.' },
  API_SOCKET_VERSION_NOT_SUPPORTED: {
    status: 426,
    message: 'The version of the WebSocket protocol is not supported. Send the header "Sec-WebSocket-Version: 13".',
  },
  API_UNAUTHORIZED: {
    status: 401,
    message: 'The request has no token. Send the header "Authorization: Bearer <token>".',
  },
  BUILDS_BUILD_INVALID: { status: 400, message: 'The build is invalid: {error}.' },
  BUILDS_BUILD_NOT_COMPLETE: {
    status: 400,
    message: 'The build is not complete. Upload its file, then complete the build.',
  },
  BUILDS_BUILD_NOT_FOUND: {
    status: 404,
    message:
      'This game or environment has no such build. Check the build id. Tags can be set only on builds of an environment.',
  },
  BUILDS_KIND_NOT_AVAILABLE: {
    status: 400,
    message: 'This service cannot run builds of kind "{kind}": {reason}. Use one of: {kinds}.',
  },
  BUILDS_TAGS_MISSING_EXCLUSIVE_KEY: {
    status: 400,
    message: 'The exclusive tag "{key}" is missing from "tags". Give it a value there.',
  },
  BUILDS_TAGS_NULL_EXCLUSIVE_KEY: { status: 400, message: 'The exclusive tag "{key}" is null. Give it a value.' },
  BUILDS_TOO_MANY_TAGS: {
    status: 400,
    message:
      'The build would have {count} tags; at most {count_max} are allowed. Set some to null, which removes them.',
  },
  CAPTCHA_CAPTCHA_FAILED: { status: 400, message: 'The captcha was rejected: {reason}. Solve a new one.' },
  CAPTCHA_CAPTCHA_REQUIRED: {
    status: 403,
    message:
      'This request needs a captcha. Let the player solve the one described in metadata, and send the response as "captcha".',
  },
  CAPTCHA_CAPTCHA_UNAVAILABLE: {
    status: 503,
    message:
      'The captcha could not be checked. Solve a new one and try again. If this goes on, the receipt of the request says why.',
  },
  CAPTCHA_WORK_NOT_USED: {
    status: 400,
    message:
      "The namespace's current version does not use proof of work. Set matchmaker.captcha.pow in the version to use it.",
  },
  CDN_BUSY: {
    status: 503,
    message: 'The service is checking too many site passwords at once. Try again in a few seconds.',
  },
  CDN_DOMAIN_NOT_CHECKED: {
    status: 503,
    message: 'The domain could not be verified because no name server answered for {name}. Try again.',
  },
  CDN_DOMAIN_NOT_PROVEN: {
    status: 400,
    message:
      'The domain is not verified. Publish the DNS record {name} of type {type} with the text {value}, then add the domain again.',
  },
  CDN_INVALID_AUTH_USER_PASSWORD: {
    status: 400,
    message: 'The password is not a bcrypt hash of cost 4 to 12 ($2b$10$ and 53 characters). Hash it first.',
  },
  CDN_INVALID_DOMAIN: {
    status: 400,
    message:
      'The domain is invalid or belongs to this service. Write it like play.example.com, without scheme and port.',
  },
  CDN_TOO_MANY_AUTH_USERS: {
    status: 400,
    message: 'The namespace already has the maximum of {max} users. Remove one first.',
  },
  CDN_TOO_MANY_DOMAINS: {
    status: 400,
    message: 'The namespace already has the maximum of {max} domains. Remove one first.',
  },
  CLAIMS_ENTITLEMENT_EXPIRED: { status: 401, message: 'The token has expired. Get a new one.' },
  CLAIMS_MISSING_ENTITLEMENT: {
    status: 401,
    message: 'This route does not accept tokens of this kind. Use one of: {entitlements}.',
  },
  CLOUD_DEVICE_LINK_ALREADY_COMPLETE: {
    status: 400,
    message: 'The device link is already complete. Prepare a new one.',
  },
  CLOUD_HOSTNAME_TAKEN: {
    status: 400,
    message:
      'Another namespace has this domain. If it is yours, publish the DNS record {name} of type {type} with the text {value}, then add the domain again.',
  },
  CLOUD_INVALID_CONFIG: { status: 400, message: 'The configuration is invalid: {error}.' },
  CLUSTER_DATACENTER_NOT_FOUND: {
    status: 404,
    message: 'No such datacenter exists. List the datacenters to see their ids.',
  },
  DATABASE_BUSY: { status: 503, message: 'The database is too busy to answer in time. Try again.' },
  DATABASE_UNAVAILABLE: { status: 503, message: 'The database is unavailable. Try again.' },
  ERROR: {
    status: 500,
    message: "The service failed to handle the request. Give the ray id of this answer to the service's operator.",
  },
  FEATURE_DISABLED: { status: 400, message: 'This release does not support {feature}. Use {instead} instead.' },
  GAME_ENVIRONMENT_NOT_FOUND: {
    status: 404,
    message: 'This game has no such environment (namespace). Check the environment id.',
  },
  GAME_NOT_FOUND: { status: 404, message: 'No such game exists, or you have no access to it. Check the game id.' },
  GAME_TOO_MANY_NAMESPACES: {
    status: 400,
    message: 'The game already has the maximum of {max} namespaces. Use one of them, or create another game.',
  },
  GAME_TOO_MANY_SITES: {
    status: 400,
    message: 'The game already has the maximum of {max} sites. Use one of them, or create another game.',
  },
  GAME_TOO_MANY_VERSIONS: {
    status: 400,
    message: 'The game already has the maximum of {max} versions. Use one of them, or create another game.',
  },
  GATEWAY_BODY_NOT_ALLOWED: {
    status: 400,
    message:
      'A {method} request to a game server cannot have a body. Send the body by POST, or the values in the query.',
  },
  GATEWAY_BODY_SLOW: {
    status: 400,
    message:
      'The request body was sent, or read by the game server, at less than {bytes} bytes a second. Send it faster, or tell the developer of the game server that it reads too slowly.',
  },
  GATEWAY_GAME_BUSY: {
    status: 503,
    message:
      'This game has used up its share of the requests in progress, or of the open WebSockets. Try again in a second.',
  },
  GATEWAY_NAME_NOT_FOUND: {
    status: 404,
    message: 'No game server has a port for http named "{name}". Ask the matchmaker for the address again.',
  },
  GATEWAY_SERVER_ENDED: {
    status: 400,
    message: 'The game server {server_id} is gone: it {how}. Ask the matchmaker for another lobby.',
  },
  GATEWAY_SERVER_NOT_READY: {
    status: 503,
    message: 'The game server {server_id} has not started yet. Try again in a moment.',
  },
  GATEWAY_SERVER_SILENT: {
    status: 503,
    message: 'The game server {server_id} did not answer within {seconds} s. Tell its developer.',
  },
  GATEWAY_SERVER_UNREACHABLE: {
    status: 503,
    message:
      'The game server {server_id} runs, but refused the connection, closed it without an answer, or sent an answer that is not valid HTTP. It may be starting: try again.',
  },
  GATEWAY_SOCKET_REFUSED: {
    status: 503,
    message:
      'The game server {server_id} did not accept the WebSocket. It may be starting: try again. If it refuses this path or protocol, choose another.',
  },
  GATEWAY_SOCKET_REQUIRED: {
    status: 400,
    message: "This port of the game server takes only players' WebSockets. Open one with a player's token.",
  },
  GATEWAY_TOKEN_REQUIRED: {
    status: 401,
    message:
      "The WebSocket has no player's token. Add it to the URL as player_token, or send the subprotocol bearer.TOKEN.",
  },
  GATEWAY_TOO_MANY_BYTES: {
    status: 429,
    message:
      'This game server has exchanged too many bytes within this minute, with all players or with your address. Try again in a minute.',
  },
  GATEWAY_TOO_MANY_CONNECTIONS: {
    status: 429,
    message:
      'Too many requests or WebSockets are open at this game server, or your address opened too many within a second. Try again in a second.',
  },
  GROUP_ALREADY_MEMBER: {
    status: 400,
    message: 'The identity is already a member of the group. Nothing needs to be done.',
  },
  GROUP_CANNOT_REQUEST_JOIN: {
    status: 400,
    message: 'The group is closed to join requests. Ask a member for an invite.',
  },
  GROUP_FULL: { status: 400, message: 'The group already has the maximum of {max} members. Remove one first.' },
  GROUP_INSUFFICIENT_PERMISSIONS: { status: 403, message: "Only the group's owner may do this. Ask the owner." },
  GROUP_INVITE_CODE_ALREADY_USED: { status: 400, message: 'The invite has been used up. Ask for a new one.' },
  GROUP_INVITE_CODE_EXPIRED: { status: 400, message: 'The invite has expired. Ask for a new one.' },
  GROUP_INVITE_CODE_INVALID: { status: 400, message: 'No invite has this code. Check its spelling.' },
  GROUP_JOIN_REQUEST_ALREADY_EXISTS: {
    status: 400,
    message: "You have already asked to join this group. Wait for its owner's answer.",
  },
  GROUP_MEMBER_BANNED: {
    status: 400,
    message: "The identity is banned from this group. Ask the group's owner to lift the ban.",
  },
  GROUP_NOT_FOUND: { status: 404, message: 'No such group exists, or you are not a member of it. Check the group id.' },
  GROUP_NOT_MEMBER: {
    status: 403,
    message: 'The identity is not a member of this group. Check the ids of both, or let the identity join first.',
  },
  GROUP_TOO_MANY_GAMES: {
    status: 400,
    message: 'The group already has the maximum of {max} games. Use one of them, or create the game in another group.',
  },
  GROUP_TOO_MANY_INVITES: {
    status: 400,
    message:
      'The group already has the maximum of {max} open invites. Use one of them, or wait until one expires or is used up, or until a member leaves, which ends all of them.',
  },
  HUB_LINK_INVALID: {
    status: 401,
    message: 'The link to the hub was used or has expired. Get another one with "muster open".',
  },
  HUB_NOT_LOGGED_IN: {
    status: 401,
    message: 'The browser has no session of the hub, or it has ended. Get a link to log in with "muster open".',
  },
  HUB_OTHER_SESSION: {
    status: 400,
    message:
      'This browser is logged in to the hub as someone other than the bearer of the link. Log out first, or send "replaces_session": true.',
  },
  IDENTITY_NOT_ADMIN: { status: 403, message: 'Only an administrator may do this. Log in as one.' },
  IDENTITY_NOT_FOUND: { status: 404, message: 'No such identity exists. Check the identity id.' },
  LIMITS_UNAVAILABLE: {
    status: 503,
    message: 'The rate limiter is unavailable, so the request was not executed. Try again.',
  },
  LINK_INVALID: { status: 403, message: 'The link was altered or has expired. Ask for a new one.' },
  MACHINE_NOT_FOUND: { status: 404, message: 'There is no such machine. List the machines to see their ids.' },
  MATCHMAKER_AUTO_CREATE_FAILED: {
    status: 400,
    message:
      'None of the requested game modes is available in the requested regions. Choose another game mode or region.',
  },
  MATCHMAKER_CUSTOM_LOBBIES_DISABLED: {
    status: 400,
    message: 'Players may not create lobbies in this game mode. Set actions.create of the game mode to allow it.',
  },
  MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID: { status: 400, message: 'The lobby cannot be created: {reason}.' },
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED: {
    status: 400,
    message: 'Players may not choose max_players in the game mode "{game_mode}". Leave it out.',
  },
  MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID: {
    status: 400,
    message: 'In the game mode "{game_mode}", max_players must be from 1 to {max}.',
  },
  MATCHMAKER_FIND_DISABLED: { status: 400, message: 'The game mode does not allow find. Use another game mode.' },
  MATCHMAKER_GAME_MODE_NOT_FOUND: {
    status: 404,
    message: 'The namespace\'s current version has no game mode "{game_mode}". Check its name.',
  },
  MATCHMAKER_IDENTITY_REQUIRED: {
    status: 400,
    message:
      'The game mode requires an identity, but matchmaking requests cannot carry one. Set identity_requirement to none.',
  },
  MATCHMAKER_JOIN_DISABLED: { status: 400, message: 'The game mode does not allow join. Use find instead.' },
  MATCHMAKER_LOBBY_FULL: { status: 400, message: 'The lobby is full. Find another one.' },
  MATCHMAKER_LOBBY_NOT_FOUND: { status: 404, message: 'This namespace has no such lobby. Find another one.' },
  MATCHMAKER_LOBBY_NOT_READY: { status: 503, message: 'The lobby was not ready within {timeout_ms} ms: {reason}.' },
  MATCHMAKER_LOBBY_STOPPED: { status: 400, message: 'The lobby has stopped: {reason}.' },
  MATCHMAKER_NO_AVAILABLE_LOBBIES: {
    status: 400,
    message: 'No lobby has a free seat, and prevent_auto_create_lobby forbids creating one. Try again later.',
  },
  MATCHMAKER_NO_GAME_MODE_PROVIDED: {
    status: 400,
    message: 'The list game_modes is empty. Name at least one game mode.',
  },
  MATCHMAKER_PARTY_TOO_LARGE: {
    status: 400,
    message: 'The party is larger than the {max} players allowed here. Send several smaller requests.',
  },
  MATCHMAKER_PLAYER_ALREADY_CONNECTED: {
    status: 400,
    message: 'The player token was already used. Turn this player away.',
  },
  MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY: {
    status: 400,
    message: "The player's seat is in another lobby. Turn the player away.",
  },
  MATCHMAKER_PLAYER_REGISTRATION_EXPIRED: {
    status: 400,
    message: 'The player did not connect in time and lost the seat. The player must find a lobby again.',
  },
  MATCHMAKER_PLAYER_REMOVED: {
    status: 400,
    message: 'The player has left or was removed from the lobby. The player must find a lobby again.',
  },
  MATCHMAKER_QUEUE_FULL: {
    status: 503,
    message: 'The namespace already has the maximum of {max} finds waiting for a lobby. Try again in a moment.',
  },
  MATCHMAKER_RECEIPT_NOT_FOUND: {
    status: 404,
    message:
      'This namespace has no receipt of this request. Finds, joins and creates that reach the matchmaker have one, for an hour; at most MUSTER_RECEIPTS_PER_SECOND_MAX in a second are kept.',
  },
  MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE: {
    status: 400,
    message: 'The game mode "{game_mode}" is not available in the region "{region}". Choose another region.',
  },
  MATCHMAKER_REGION_NOT_FOUND: {
    status: 404,
    message: 'No region "{region}" exists. List the regions to see their names.',
  },
  MATCHMAKER_TAGS_DISABLED: { status: 400, message: 'The game mode "{game_mode}" does not take tags. Leave them out.' },
  MATCHMAKER_TAG_NAME_TOO_LONG: { status: 400, message: "A tag's name is longer than {max} bytes. Shorten it." },
  MATCHMAKER_TAG_TOO_LONG: { status: 400, message: "A tag's value is longer than {max} bytes. Shorten it." },
  MATCHMAKER_TICKET_TAKEN: {
    status: 400,
    message: 'Another find with this ticket is still waiting. Make a new UUID for each find.',
  },
  MATCHMAKER_TOO_MANY_LOBBIES: {
    status: 400,
    message:
      'No lobby can be created: the namespace has reached lobby_count_max, or earlier finds wait. Try again, send wait_ms with a find, or let the developer raise lobby_count_max.',
  },
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: {
    status: 400,
    message:
      "Your address would exceed the namespace's limit of {max} players per client. Let some leave, or let the developer raise max_players_per_client.",
  },
  MATCHMAKER_TOO_MANY_TAGS: { status: 400, message: 'The request has more than {max} tags. Send fewer.' },
  MATCHMAKER_VERIFICATION_FAILED: {
    status: 400,
    message:
      "The game's verification server rejected the player. Check verification_data; the receipt of this request has the status of the server's answer.",
  },
  MATCHMAKER_VERIFICATION_NOT_USED: {
    status: 400,
    message:
      'The current version verifies no {kind} in the game mode "{game_mode}". Set verification_config of that action in the version to use it.',
  },
  MATCHMAKER_VERIFICATION_REQUEST_FAILED: {
    status: 400,
    message: "The game's verification server could not be reached or did not answer in time. Try again.",
  },
  NAMESPACE_NOT_FOUND: { status: 404, message: 'This game has no such namespace. Check the namespace id.' },
  OBJECTS_UNAVAILABLE: { status: 503, message: 'The object storage is unavailable. Try again.' },
  SERVERS_CLUSTER_UNAVAILABLE: {
    status: 503,
    message: 'The cluster that runs game servers does not answer. The server starts once the cluster answers.',
  },
  SERVERS_ENGINE_UNAVAILABLE: {
    status: 503,
    message: 'The container engine of the machine does not answer. The server starts once the engine answers.',
  },
  SERVERS_MUST_SPECIFY_ROUTING_TYPE: {
    status: 400,
    message: 'The routing of port "{port}" must have exactly one of game_guard and host.',
  },
  SERVERS_SERVER_FAILED_TO_CREATE: { status: 400, message: 'The server cannot be created: {error}.' },
  SERVERS_SERVER_NOT_FOUND: { status: 404, message: 'This environment has no such server. Check the server id.' },
  SERVERS_TOO_MANY_WAITING: {
    status: 400,
    message:
      'At most {waiting_max} servers of this environment may wait for a machine of this region. Create more once they run, or end some; the log of the oldest says why they wait.',
  },
  SERVERS_UNSUPPORTED_HOST_PROTOCOL: {
    status: 400,
    message:
      'The port "{port}" uses host routing, which supports only tcp and udp. Change its protocol or its routing.',
  },
  SERVICE_NOT_READY: {
    status: 503,
    message: 'The service is not ready: {reasons}. metadata.reasons says what to do about each reason.',
  },
  SERVICE_STOPPING: { status: 503, message: 'The service is stopping. Try again in a moment.' },
  SHARES_TOO_MANY: {
    status: 400,
    message: 'The namespace already has the maximum of {max} share links. Revoke one first.',
  },
  SHARE_NOT_FOUND: {
    status: 404,
    message: 'There is no such share link. It may have been revoked, or has expired. Ask for a new one.',
  },
  STORAGE_FULL: { status: 503, message: "The service's disk is full. Try again after its operator has freed space." },
  TOKEN_ERROR: { status: 400, message: 'A token in the request is invalid: {reason}. Get a new one.' },
  TOKEN_INVALID: { status: 401, message: 'The token is malformed or was not signed by this service. Get a new one.' },
  TOKEN_REFRESH_NOT_FOUND: { status: 403, message: 'The refresh token is unknown to this service. Log in again.' },
  TOKEN_REVOKED: {
    status: 403,
    message: 'The token was already used or has been revoked. Log in again, or create a new token.',
  },
  TOO_MANY_SOCKETS: { status: 429, message: 'Too many WebSockets are open, for this caller or in total. Close some.' },
  TOO_MANY_TRANSFERS: {
    status: 429,
    message: 'This address already has the maximum of {limit} downloads and uploads in progress. Wait for one to end.',
  },
  TOO_MANY_WATCHERS: {
    status: 429,
    message:
      'This caller, or all callers together, have too many requests that wait for a change. Close some, or try again.',
  },
  TRANSFERS_BUSY: { status: 503, message: 'The service has too many downloads and uploads in progress. Try again.' },
  UPLOAD_BUSY: {
    status: 503,
    message:
      'Another request is completing this upload, or its files changed while they were checked. Try again in a moment.',
  },
  UPLOAD_INCOMPLETE: {
    status: 400,
    message: 'The upload is incomplete: {error}. Send the missing parts, then complete it.',
  },
  UPLOAD_INVALID: { status: 400, message: 'The upload is invalid: {error}.' },
  UPLOAD_LENGTH_MISMATCH: {
    status: 400,
    message:
      'The body does not have the {expected_bytes} bytes announced when the upload was prepared. Send exactly that many.',
  },
  UPLOAD_NOT_FOUND: { status: 404, message: 'No such upload exists. Check the upload id.' },
  UPLOAD_QUOTA_REACHED: {
    status: 429,
    message:
      'The picture quota of {quota} for this game, namespace or identity is exceeded. If the answer has Retry-After, the daily quota is used up: try again then. Otherwise ask the operator to raise the quota.',
  },
  UPLOAD_SIGNATURE_INVALID: {
    status: 403,
    message:
      'The upload URL was altered or has expired. Get new URLs from GET /cloud/games/GAME_ID/uploads/UPLOAD_ID/requests, or prepare the upload again.',
  },
  UPLOAD_TOO_LARGE: {
    status: 400,
    message: 'The upload is larger than {max_content_length} bytes. Upload a smaller file.',
  },
  VALIDATION_ERROR: { status: 400, message: 'The request has invalid content: {error}.' },
  VERSION_NOT_FOUND: { status: 404, message: 'This game has no such version. Check the version id.' },
  WATCH_BAD_FRAME: { status: 400, message: 'The frame is invalid: {error}.' },
  WATCH_NOT_WATCHABLE: {
    status: 400,
    message: 'This path cannot be watched. Watch one that takes the query parameter watch_index.',
  },
  WATCH_SUBPROTOCOL_REQUIRED: {
    status: 400,
    message: 'The WebSocket does not offer the subprotocol muster.watch.v1. Offer it (docs/watch.md).',
  },
  WATCH_TOO_MANY_FRAMES: {
    status: 429,
    message:
      'The client sends frames too fast: at most {at_once} at once, then {limit} a second. Wait, then send fewer.',
  },
  WATCH_UPGRADE_REQUIRED: {
    status: 400,
    message: 'This path only accepts WebSockets. Request an upgrade of the connection.',
  },
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

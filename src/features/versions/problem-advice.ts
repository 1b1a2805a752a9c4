import { LENIENT_NAME_ID_BYTES_MAX, type ProblemAdvice } from '../names.ts';
import { PORT_ADVICE } from '../ports.ts';
import * as captcha from './captcha-rules.ts';
import * as cdn from './cdn-rules.ts';
import { BRACES_MAX, WILDCARDS_MAX } from './globs.ts';
import { PORTS_MAX, RANGE_MAX, RANGE_MIN } from './port-rules.ts';
import * as rules from './rules.ts';
import { TIERS } from './tiers.ts';

const PLAYER_COUNT = `1 to ${rules.PLAYERS_MAX}`;
const DIFFICULTY = `1 to ${captcha.DIFFICULTY_MAX}`;
const PRIORITY = `0 to ${cdn.PRIORITY_MAX}`;
const HOST_NAME = 'a host name in lower case, like play.example.com';
const NO_NUL = 'not empty, and without NUL characters';

/** What to do about the problems of a version's configuration. */
export const VERSION_ADVICE: ProblemAdvice = new Map([
  // Game modes.
  ['game-modes-meta.too-few', 'at least one'],
  ['game-modes-meta.too-many', `at most ${rules.GAME_MODES_MAX}`],
  [
    'name-id-invalid',
    `letters, digits and underscores, with single dashes between them; at most ${LENIENT_NAME_ID_BYTES_MAX} bytes`,
  ],
  ...['normal', 'direct', 'party'].flatMap((which): [string, string][] => [
    [`max-players-${which}.too-low`, PLAYER_COUNT],
    [`max-players-${which}.too-high`, PLAYER_COUNT],
  ]),
  ['regions.*.invalid', 'this service has no such region'],
  ['tier-name-id-invalid', `one of ${[...TIERS.keys()].join(', ')}`],
  ['idle-lobbies.min-gt-max', 'min is above max'],
  ['idle-lobbies.min-too-high', `at most ${rules.IDLE_MIN_MAX}`],
  ['idle-lobbies.max-too-high', `at most ${rules.IDLE_MAX_MAX}`],
  ['no-runtime', 'set docker for the game mode or for all'],
  // Programs.
  ['no-build', 'set docker.image_id to a complete build of this game'],
  ['args-too-many', `at most ${rules.ARGUMENTS_MAX}`],
  ['args.*.invalid', NO_NUL],
  ['args.*.too-long', `at most ${rules.ARGUMENT_BYTES_MAX} bytes`],
  ['args.*.not-unique', 'an earlier argument is the same'],
  ['env-vars-too-many', `at most ${rules.VARIABLES_MAX}`],
  ['env-vars.*.key.invalid', 'letters, digits and underscores, and no digit first'],
  ['env-vars.*.key.too-long', `at most ${rules.VARIABLE_NAME_BYTES_MAX} bytes`],
  ['env-vars.*.key.conflicts-with-default', 'only the service sets variables of this name'],
  ['env-vars.*.value.invalid', NO_NUL],
  ['env-vars.*.value.too-long', `at most ${rules.VARIABLE_BYTES_MAX} bytes`],
  // Ports.
  ['ports-too-many', `at most ${PORTS_MAX}`],
  ...PORT_ADVICE,
  ['unsupported-target-port', 'with network_mode host and proxy none, set port_range instead of port'],
  ['unsupported-port-range', 'port_range needs proxy none'],
  ['needs-host-network', 'proxy none needs network_mode host'],
  ['presence-needs-http', 'presence gateway needs proxy game_guard, and protocol http or https'],
  ['needs-game-guard', 'with proxy none, the protocol is tcp or udp'],
  ['port-out-of-range', `within ${RANGE_MIN} and ${RANGE_MAX}`],
  // Verification.
  ['url.invalid', 'an address like https://verify.example.com/players, without user and password'],
  ['url.invalid-scheme', 'http or https'],
  ['url.no-host', 'an address like https://verify.example.com/players'],
  ['url.invalid-ip', 'an address on the Internet, or one that the operator allows by MUSTER_OUTBOUND_ALLOW'],
  ['url.invalid-port', 'port 80, 443, 1024 or above, or one that the operator allows by MUSTER_OUTBOUND_ALLOW'],
  ['secret.invalid', `whsec_ and ${rules.SECRET_BYTES_MIN} to ${rules.SECRET_BYTES_MAX} bytes in base64`],
  ['verification-config.headers-meta.too-many', `at most ${rules.HEADERS_MAX}`],
  ['invalid-name', 'the name of a header, and not of one that only the service sets'],
  ['invalid-value', 'without line breaks and other control characters'],
  // Sites.
  ['no-site-id', 'set site_id'],
  ['site-id.not-found', 'a complete site of this game'],
  ['routes-meta.too-many', `at most ${cdn.ROUTES_MAX}`],
  ['glob.invalid', 'not empty, and without extended patterns such as !(a)'],
  ['glob.too-complex', `at most ${WILDCARDS_MAX} wildcards and ${BRACES_MAX} braces`],
  ['glob.not-unique', 'an earlier route has the same'],
  ['priority.too-low', PRIORITY],
  ['priority.too-high', PRIORITY],
  ['middlewares-meta.too-many', `at most ${cdn.MIDDLEWARES_MAX}`],
  ['middlewares.*.not-unique', 'an earlier one has custom_headers too; put all into one'],
  ['custom-headers.headers-meta.too-many', `at most ${cdn.HEADERS_MAX}`],
  ['headers.*.name.invalid', 'the name of a header, and not of one that only the service sets'],
  ['headers.*.name.too-long', `at most ${cdn.HEADER_NAME_MAX} bytes`],
  ['headers.*.value.invalid', 'without line breaks and other control characters'],
  ['headers.*.value.too-long', `at most ${cdn.HEADER_VALUE_MAX} bytes`],
  // Captchas.
  ['captcha-meta.must-have-one', 'set hcaptcha, turnstile or pow'],
  ['requests-before-reverify.too-high', `at most ${captcha.REQUESTS_MAX}`],
  ['verification-ttl.too-high', `at most ${captcha.TTL_MS_MAX} ms`],
  ['difficulty.too-low', DIFFICULTY],
  ['difficulty.too-high', DIFFICULTY],
  ['hostnames.*.invalid', HOST_NAME],
  ['domains-meta.too-many', `at most ${captcha.DOMAINS_MAX}`],
  ['domains.*.invalid', HOST_NAME],
  ['site-key.required', 'set both keys'],
  ['site-key.too-short', 'at least one character'],
  ['secret-key.required', 'set both keys'],
  ['secret-key.too-short', 'at least one character'],
  ['hcaptcha.site-key.too-long', `at most ${captcha.HCAPTCHA_KEYS.site_key} bytes`],
  ['hcaptcha.secret-key.too-long', `at most ${captcha.HCAPTCHA_KEYS.secret_key} bytes`],
  ['turnstile.site-key.too-long', `at most ${captcha.TURNSTILE_KEYS.site_key} bytes`],
  ['turnstile.secret-key.too-long', `at most ${captcha.TURNSTILE_KEYS.secret_key} bytes`],
  ['domains.*.secret-key.too-long', `at most ${captcha.TURNSTILE_KEYS.secret_key} bytes`],
]);

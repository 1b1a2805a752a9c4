import { list, map } from './limits-rules.ts';

/** A limit of a version's configuration, as in Rivet: values just within it and just beyond. */
export interface VersionRow {
  /** The path in the version. */
  place: string[];
  good: unknown[];
  /** Each value with the path of its error. */
  bad: [value: unknown, path: string][];
}

const MATCHMAKER = ['config', 'matchmaker'];
const CDN = ['config', 'cdn'];
const MODE = 'config.matchmaker.game-modes.*default*';
const text = (length: number): string => 'x'.repeat(length);
/** A label in an error's path: its first 128 letters. */
const marked = (name: string): string => `*${name.slice(0, 128)}*`;

/** Makes a row for a path within the matchmaker, whose errors are reported below the game mode. */
function modeRow(place: string[], good: unknown[], bad: [value: unknown, path: string][]): VersionRow {
  return { place: [...MATCHMAKER, ...place], good, bad: bad.map(([value, path]) => [value, `${MODE}.${path}`]) };
}

const playersRow = (place: string, which: string): VersionRow =>
  modeRow(
    [place],
    [1, 256],
    [
      [0, `player-counts.${which}.too-low`],
      [257, `player-counts.${which}.too-high`],
    ],
  );

const range = (min: number, max: number) => ({ x: { protocol: 'udp', proxy: 'none', port_range: { min, max } } });
const onHost = (ports: object) => ({ network_mode: 'host', ports });
const port = (index: number) => ({ port: index + 1, protocol: 'http' });
const idle = (min: number, max: number) => ({ min, max });
const verifying = (verification: object) => ({ enabled: true, verification });
const url = 'https://example.org';
const keys = (site: number, secret: number) => ({ site_key: text(site), secret_key: text(secret) });
const captcha = (members: object) => ({
  requests_before_reverify: 0,
  verification_ttl: 0,
  turnstile: keys(1, 1),
  ...members,
});
const OF_CAPTCHA = 'config.matchmaker.captcha';
const header = (name: string, value = '') => [{ name, value }];
const OF_ROUTE = 'config.cdn.routes.0';
const OF_HEADERS = `${OF_ROUTE}.middlewares.0.custom-headers`;

/** `docker`: a valid one. */
export function listVersionRows(docker: object): VersionRow[] {
  const dockerRow = (members: object[], bad: [members: object, path: string][]): VersionRow =>
    modeRow(
      ['docker'],
      members.map((one) => ({ ...docker, ...one })),
      bad.map(([one, path]) => [{ ...docker, ...one }, path]),
    );
  return [
    {
      place: ['display_name'],
      good: [text(1), text(128)],
      bad: [
        ['', 'display-name.too-short'],
        [text(129), 'display-name.too-long'],
      ],
    },
    {
      place: [...MATCHMAKER, 'game_modes'],
      good: [map(1, () => ({})), map(32, () => ({})), { [text(64)]: {} }],
      bad: [
        [{}, 'config.matchmaker.game-modes-meta.too-few'],
        [map(33, () => ({})), 'config.matchmaker.game-modes-meta.too-many'],
        [{ '': {} }, 'config.matchmaker.game-modes.**.name-id-invalid'],
        [{ [text(65)]: {} }, `config.matchmaker.game-modes.${marked(text(65))}.name-id-invalid`],
        [{ [text(200)]: {} }, `config.matchmaker.game-modes.${marked(text(200))}.name-id-invalid`],
      ],
    },
    playersRow('max_players', 'max-players-normal'),
    playersRow('max_players_direct', 'max-players-direct'),
    playersRow('max_players_party', 'max-players-party'),
    modeRow(['regions'], [{}, { local: {} }], [[{ moon: {} }, 'regions.0.invalid']]),
    modeRow(
      ['regions', 'local', 'tier'],
      ['basic-1d16', 'basic-4d1'],
      [
        ['', 'regions.*local*.tier-name-id-invalid'],
        ['basic-8d1', 'regions.*local*.tier-name-id-invalid'],
      ],
    ),
    modeRow(
      ['regions', 'local', 'idle_lobbies'],
      [idle(0, 0), idle(16, 32)],
      [
        [idle(17, 32), 'regions.*local*.idle-lobbies.min-too-high'],
        [idle(0, 33), 'regions.*local*.idle-lobbies.max-too-high'],
        [idle(2, 1), 'regions.*local*.idle-lobbies.min-gt-max'],
      ],
    ),
    dockerRow(
      [{ args: [] }, { args: list(64, String) }, { args: [text(512)] }],
      [
        [{ args: list(65, String) }, 'args-too-many'],
        [{ args: [''] }, 'args.0.invalid'],
        [{ args: [text(513)] }, 'args.0.too-long'],
        [{ args: ['x', 'x'] }, 'args.1.not-unique'],
      ],
    ),
    dockerRow(
      [{ env: {} }, { env: map(64, () => 'x') }, { env: { [text(64)]: text(512) } }],
      [
        [{ env: map(65, () => 'x') }, 'env-vars-too-many'],
        [{ env: { '': 'x' } }, 'env-vars.**.key.invalid'],
        [{ env: { [text(65)]: 'x' } }, `env-vars.${marked(text(65))}.key.too-long`],
        [{ env: { PORT_X: 'x' } }, 'env-vars.*PORT_X*.key.conflicts-with-default'],
        [{ env: { x: '' } }, 'env-vars.*x*.value.invalid'],
        [{ env: { x: text(513) } }, 'env-vars.*x*.value.too-long'],
      ],
    ),
    dockerRow(
      [{ ports: {} }, { ports: map(16, port) }, { ports: { [text(16)]: port(0) } }, onHost(range(26_000, 31_999))],
      [
        [{ ports: map(17, port) }, 'ports-too-many'],
        [{ ports: { '': port(0) } }, 'ports.**.label-invalid'],
        [{ ports: { [text(17)]: port(0) } }, `ports.${marked(text(17))}.label-invalid`],
        [onHost(range(25_999, 26_000)), 'ports.*x*.port-out-of-range'],
        [onHost(range(31_999, 32_000)), 'ports.*x*.port-out-of-range'],
        [onHost(range(26_001, 26_000)), 'ports.*x*.range-min-gt-max'],
      ],
    ),
    modeRow(
      ['game_modes', 'default', 'actions', 'find'],
      [verifying({ url }), verifying({ url, headers: map(32, () => '') })],
      [
        [verifying({ url: '' }), 'find-config.verification-config.url.invalid'],
        [verifying({ url, headers: map(33, () => '') }), 'find-config.verification-config.headers-meta.too-many'],
        [verifying({ url, headers: { '': '' } }), 'find-config.verification-config.headers.**.invalid-name'],
        [verifying({ url, headers: { x: '\n' } }), 'find-config.verification-config.headers.*x*.invalid-value'],
      ],
    ),
    {
      place: [...MATCHMAKER, 'captcha'],
      good: [
        captcha({}),
        captcha({ requests_before_reverify: 600, verification_ttl: 43_200_000 }),
        captcha({ turnstile: keys(30, 40), hcaptcha: keys(36, 42) }),
      ],
      bad: [
        [captcha({ requests_before_reverify: 601 }), `${OF_CAPTCHA}.requests-before-reverify.too-high`],
        [captcha({ verification_ttl: 43_200_001 }), `${OF_CAPTCHA}.verification-ttl.too-high`],
        [captcha({ turnstile: keys(0, 1) }), `${OF_CAPTCHA}.turnstile.site-key.too-short`],
        [captcha({ turnstile: keys(31, 1) }), `${OF_CAPTCHA}.turnstile.site-key.too-long`],
        [captcha({ turnstile: keys(1, 0) }), `${OF_CAPTCHA}.turnstile.secret-key.too-short`],
        [captcha({ turnstile: keys(1, 41) }), `${OF_CAPTCHA}.turnstile.secret-key.too-long`],
        [captcha({ hcaptcha: {} }), `${OF_CAPTCHA}.hcaptcha.site-key.required`],
        [captcha({ hcaptcha: keys(37, 1) }), `${OF_CAPTCHA}.hcaptcha.site-key.too-long`],
        [captcha({ hcaptcha: keys(1, 43) }), `${OF_CAPTCHA}.hcaptcha.secret-key.too-long`],
        [captcha({ turnstile: undefined }), 'config.matchmaker.captcha-meta.must-have-one'],
      ],
    },
    {
      place: [...CDN, 'routes'],
      good: [[], list(32, (index) => ({ glob: `${index}`, priority: 0, middlewares: [] }))],
      bad: [
        [list(33, (index) => ({ glob: `${index}`, priority: 0, middlewares: [] })), 'config.cdn.routes-meta.too-many'],
        [list(2, () => ({ glob: 'x', priority: 0, middlewares: [] })), 'config.cdn.routes.1.glob.not-unique'],
      ],
    },
    { place: [...CDN, 'routes', '0', 'glob'], good: ['x'], bad: [['', `${OF_ROUTE}.glob.invalid`]] },
    {
      place: [...CDN, 'routes', '0', 'priority'],
      good: [0, 100],
      bad: [
        [-1, `${OF_ROUTE}.priority.too-low`],
        [101, `${OF_ROUTE}.priority.too-high`],
      ],
    },
    {
      place: [...CDN, 'routes', '0', 'middlewares'],
      good: [[], list(32, () => ({ kind: {} }))],
      bad: [[list(33, () => ({ kind: {} })), `${OF_ROUTE}.middlewares-meta.too-many`]],
    },
    {
      place: [...CDN, 'routes', '0', 'middlewares', '0', 'kind', 'custom_headers', 'headers'],
      good: [[], list(32, (index) => ({ name: `x${index}`, value: '' })), header(text(512), text(1_024))],
      bad: [
        [list(33, (index) => ({ name: `x${index}`, value: '' })), `${OF_HEADERS}.headers-meta.too-many`],
        [header(''), `${OF_HEADERS}.headers.0.name.invalid`],
        [header('X-Accel-Redirect', '/files'), `${OF_HEADERS}.headers.0.name.invalid`],
        [header(text(513)), `${OF_HEADERS}.headers.0.name.too-long`],
        [header('x', '\n'), `${OF_HEADERS}.headers.0.value.invalid`],
        [header('x', text(1_025)), `${OF_HEADERS}.headers.0.value.too-long`],
      ],
    },
  ];
}

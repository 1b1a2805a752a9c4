/** A limit that no shape has: values just within it and just beyond, at a path of an operation's body. */
export interface RuleRow {
  operation: string;
  place: string[];
  good: unknown[];
  /** Each value with what its refusal says. */
  bad: [value: unknown, message: string][];
}

const text = (length: number): string => 'x'.repeat(length);
/** Two bytes for each letter, because limits of names are in bytes. */
const wide = (letters: number): string => 'ä'.repeat(letters);
export const list = <Item>(length: number, make: (index: number) => Item): Item[] =>
  Array.from({ length }, (_, index) => make(index));
export const map = <Item>(size: number, make: (index: number) => Item): Record<string, Item> =>
  Object.fromEntries(list(size, (index) => [`x${index}`, make(index)]));

/** A name for people: at least one letter, and a maximum in bytes. */
function nameRow(operation: string, place: string, bytes_max: number): RuleRow {
  return {
    operation,
    place: [place],
    good: ['x', text(bytes_max), wide(bytes_max / 2)],
    bad: [
      ['', 'display-name.too-short'],
      [text(bytes_max + 1), 'display-name.too-long'],
      [wide(bytes_max / 2 + 1), 'display-name.too-long'],
      [' x', 'display-name.invalid'],
    ],
  };
}

const bioRow = (operation: string): RuleRow => ({
  operation,
  place: ['bio'],
  good: ['', text(200), wide(100), 'x\nx\nx\nx\nx'],
  bad: [text(201), wide(101), 'x\nx\nx\nx\nx\nx'].map((bio) => [bio, 'bio.invalid']),
});

const pictureRow = (operation: string, bytes_max: number): RuleRow => ({
  operation,
  place: ['content_length'],
  good: [0, 1, bytes_max],
  bad: [[bytes_max + 1, `larger than ${bytes_max} bytes`]],
});

const GAME = '/cloud/games/{game_id}';
const NAMESPACE = `${GAME}/namespaces/{namespace_id}`;
const ENVIRONMENT = '/games/{game_id}/environments/{environment_id}';
const FIND = 'POST /matchmaker/lobbies/find';
const CREATE = 'POST /matchmaker/lobbies/create';
const DAY_MS = 24 * 3_600_000;
const MIB = 1_024 ** 2;

const portAt = (index: number) => ({ protocol: 'udp', port: index + 1 });
const hash = (cost: string) => `$2b$${cost}$${'u'.repeat(53)}`;
const file = (index: number, content_length = 0) => ({ path: `${index}`, content_length });

export const RULE_ROWS: RuleRow[] = [
  nameRow('POST /group/groups', 'display_name', 24),
  nameRow('POST /group/groups/{group_id}/profile', 'display_name', 24),
  bioRow('POST /group/groups/{group_id}/profile'),
  nameRow('POST /identity/identities/self/profile', 'display_name', 24),
  bioRow('POST /identity/identities/self/profile'),
  nameRow('POST /cloud/games', 'display_name', 24),
  nameRow(`POST ${GAME}/namespaces`, 'display_name', 128),
  nameRow(`POST ${ENVIRONMENT}/builds/prepare`, 'name', 128),
  nameRow(`POST ${GAME}/builds`, 'display_name', 128),
  nameRow(`POST ${GAME}/cdn/sites`, 'display_name', 128),
  pictureRow(`POST ${GAME}/avatar-upload/prepare`, 1_999_999),
  pictureRow('POST /identity/identities/avatar-upload/prepare', 1_999_999),
  pictureRow('POST /group/groups/avatar-upload/prepare', 1_999_999),
  pictureRow(`POST ${GAME}/logo-upload/prepare`, 4_999_999),
  pictureRow(`POST ${GAME}/banner-upload/prepare`, 9_999_999),
  {
    operation: 'POST /identity/identities/self/profile',
    place: ['account_number'],
    good: [0, 9_999],
    bad: [-1, 10_000].map((number) => [number, 'account-number.invalid']),
  },
  {
    operation: `POST ${GAME}/namespaces`,
    place: ['name_id'],
    good: ['x', text(16)],
    bad: [
      ['', 'name-id.too-short'],
      [text(17), 'name-id.too-long'],
      ['X', 'name-id.invalid'],
    ],
  },
  {
    operation: 'POST /group/groups/{group_id}/invites',
    place: ['ttl'],
    good: [1, 30 * DAY_MS],
    bad: [0, 1.5, 30 * DAY_MS + 1].map((ttl) => [ttl, 'ttl.invalid']),
  },
  {
    operation: 'POST /group/groups/{group_id}/invites',
    place: ['use_count'],
    good: [1, 5_000],
    bad: [0, 1.5, 5_001].map((count) => [count, 'use_count.invalid']),
  },
  {
    operation: `POST ${GAME}/matchmaker/lobbies/export-history`,
    place: ['query_start'],
    good: [0, 1],
    bad: [[2, 'it is after query_end']],
  },
  {
    operation: `POST ${GAME}/cdn/sites`,
    place: ['files'],
    good: [[file(0, 1_024 * MIB - 1)], list(10_000, (index) => file(index))],
    bad: [
      [[], 'at least one file'],
      [list(10_001, (index) => file(index)), 'more than 10000 files'],
      [[file(0, 1_023 * MIB), file(1, MIB)], `larger than ${1_024 * MIB - 1} bytes`],
    ],
  },
  {
    operation: `POST ${ENVIRONMENT}/builds/prepare`,
    place: ['image_file', 'content_length'],
    good: [0, 8_192 * MIB],
    bad: [[8_192 * MIB + 1, `larger than ${8_192 * MIB} bytes`]],
  },
  {
    operation: `POST ${ENVIRONMENT}/servers`,
    place: ['resources'],
    good: [{ cpu: 4_000, memory: 7_352 }],
    bad: [
      [{ cpu: 4_001, memory: 100 }, 'the largest tier, cpu 4000'],
      [{ cpu: 100, memory: 7_353 }, 'and memory 7352'],
    ],
  },
  {
    operation: `POST ${NAMESPACE}/auth-user`,
    place: ['user'],
    good: ['x', text(128)],
    bad: ['', text(129), 'x:x'].map((user) => [user, 'user.invalid']),
  },
  {
    operation: `POST ${NAMESPACE}/auth-user`,
    place: ['password'],
    good: [hash('04'), hash('12')],
    bad: [hash('03'), hash('13'), `${hash('04')}x`, ''].map((password) => [password, 'password is not']),
  },
  {
    operation: `POST ${NAMESPACE}/domains`,
    place: ['domain'],
    good: ['x.x', `${text(63)}.${text(63)}.${text(63)}.${text(63)}`],
    bad: ['', 'x', `${text(64)}.x`, `${text(62)}.${text(63)}.${text(63)}.${text(63)}.x`].map((domain) => [
      domain,
      'The domain is invalid or belongs to this service',
    ]),
  },
  {
    operation: `POST ${NAMESPACE}/tokens/development`,
    place: ['ports'],
    good: [{}, map(16, portAt), { [text(16)]: portAt(0) }],
    bad: [
      [map(17, portAt), 'ports-too-many (at most 16)'],
      [{ [text(17)]: portAt(0) }, 'ports.0.label-invalid (only lower-case letters'],
      [{ '': portAt(0) }, 'ports.0.label-invalid'],
    ],
  },
  {
    operation: FIND,
    place: ['tags'],
    good: [map(8, () => ''), { [text(128)]: text(512) }, { [wide(64)]: wide(256) }],
    bad: [
      [map(9, () => ''), 'more than 8 tags'],
      [{ [text(129)]: '' }, 'name is longer than 128 bytes'],
      [{ [wide(65)]: '' }, 'name is longer than 128 bytes'],
      [{ x: text(513) }, 'value is longer than 512 bytes'],
      [{ x: wide(257) }, 'value is longer than 512 bytes'],
    ],
  },
  {
    operation: FIND,
    place: ['max_players'],
    good: [1, 256],
    bad: [-1, 0, 257].map((count) => [count, 'max_players must be from 1 to 256']),
  },
  { operation: FIND, place: ['game_modes'], good: [], bad: [[[], 'at least one game mode']] },
  {
    operation: CREATE,
    place: ['lobby_config'],
    good: [text(16 * 1_024 - 2)],
    bad: [[text(16 * 1_024 - 1), 'lobby_config has more than 16384 bytes']],
  },
  {
    operation: 'PUT /matchmaker/lobbies/state',
    place: [],
    good: [null, text(65_534)],
    bad: [[text(65_535), 'at most 65536 bytes']],
  },
  {
    operation: `POST ${NAMESPACE}/mm-config`,
    place: ['lobby_count_max'],
    good: [1, 32_767],
    bad: [
      [0, 'lobby-count.too-low (1 to 32767)'],
      [32_768, 'lobby-count.too-high (1 to 32767)'],
    ],
  },
  {
    operation: `POST ${NAMESPACE}/mm-config`,
    place: ['max_players'],
    good: [1, 2_147_483_647],
    bad: [[0, 'max-players.too-low (1 to 2147483647)']],
  },
];

import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { cutText, outline, withoutQuery } from '../../../src/features/outbound-exchange.ts';
import { parseJsonToSendOn } from '../../../src/platform/http/json.ts';
import { find, makeControlledGame, receiptOf } from '../../support/game-server.ts';
import { openProvider } from '../../support/provider.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const provider = openProvider();
const muster = shareService({ MUSTER_OUTBOUND_ALLOW: provider.allow });
afterAll(() => provider[Symbol.asyncDispose]());
beforeEach(() => {
  provider.requests.length = 0;
  provider.answer = () => new Response(null, { status: 204 });
});

type Game = Awaited<ReturnType<typeof makeControlledGame>>;
const SECRETS = { url: 'key-in-the-query', header: 'key-of-the-header', ticket: 'ticket-of-a-player' };
const SIGNING = `whsec_${Buffer.from('a key of the signature'.padEnd(32)).toString('base64')}`;
const verified = () => ({
  enabled: true,
  verification_config: {
    url: `${provider.url}?key=${SECRETS.url}`,
    headers: { 'X-Key': SECRETS.header },
    secret: SIGNING,
  },
});
const makeVerifiedGame = () =>
  makeControlledGame(muster, { game_modes: { default: { taggable: true, actions: { find: verified() } }, open: {} } });
const pathOf = ({ game_id, namespace_id }: Game) => `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker`;

describe('exchange: an outline', () => {
  test.each([
    ['a text and its length', 'secret', '(text, 6 characters)'],
    ['the kind of a number', 4_111, '(number)'],
    ['a long number, which is sent as written', parseJsonToSendOn('12345678901234567890'), '(number)'],
    ['what cannot be secret', [true, null], [true, null]],
    ['members', { a: { b: ['x'] } }, { a: { b: ['(text, 1 characters)'] } }],
    [
      'how much is below the fourth level',
      { a: { b: { c: { d: { e: 1 } } } } },
      { a: { b: { c: { d: '(1 members)' } } } },
    ],
    ['names that the database cannot store', { 'a\0\ud800': 1 }, { 'a\ufffd\ufffd': '(number)' }],
  ])('shows %s', (_, value, shown) => {
    expect(outline(value)).toEqual(shown);
  });

  test('is short, however much there is', () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`${index} `.padEnd(100, 'x'), 'x']));
    expect(Object.keys(outline(many) as object)).toHaveLength(33);
    expect(outline(Array.from({ length: 100 }, () => 'x'))).toHaveLength(33);
    expect(JSON.stringify(outline(many)).length).toBeLessThan(4_096);
  });

  test('of an address has no query, and a cut text is well-formed', () => {
    expect(withoutQuery('https://a.example/verify?key=1#x')).toBe('https://a.example/verify');
    expect(cutText('a😀', 2)).toBe('a\ufffd');
  });
});

describe('exchange: the receipt of a verified request', () => {
  test('shows what was sent and answered without secrets; the list of receipts leaves it out', async () => {
    const game = await makeVerifiedGame();
    provider.answer = () => new Response('reason-of-the-server', { status: 403 });
    const verification_data = { ticket: SECRETS.ticket, level: 7 };
    const answer = await find(muster, game, { verification_data, tags: { map: 'ice' } });
    expect(outcomeOf(answer)).toBe('400 MATCHMAKER_VERIFICATION_FAILED');
    const receipt = await receiptOf(muster, game, answer);
    const { exchange } = receipt.verification;
    expect(exchange).toMatchObject({
      url: provider.url,
      headers: { 'content-type': 'application/json', 'x-key': '(left out)', 'webhook-signature': '(left out)' },
      body: {
        verification_data: { ticket: `(text, ${SECRETS.ticket.length} characters)`, level: '(number)' },
        game: { game_mode_name_id: 'default', tags: { map: 'ice' }, lobby: null },
        clients: { '(address)': { user_agent: expect.any(String) } },
        join_kind: 'normal',
        kind: 'find',
      },
      status: 403,
      duration_ms: expect.any(Number),
    });
    const shown = JSON.stringify(receipt);
    for (const secret of [...Object.values(SECRETS), SIGNING, 'reason-of-the-server']) {
      expect(shown).not.toContain(secret);
    }
    expect(JSON.stringify(exchange.body)).not.toContain('127.0.0.1');
    const { receipts } = await muster.api.ok('GET', `${pathOf(game)}/receipts`, { token: game.cloud_token });
    expect(JSON.stringify(receipts)).not.toContain('exchange');
  });
});

describe('exchange: a trial', () => {
  const tryIt = (game: Game, body: object, token = game.cloud_token) =>
    muster.api.post(`${pathOf(game)}/verification/try`, token, body);

  test('asks the verification server as a request does, takes no seat, and is recorded', async () => {
    const game = await makeVerifiedGame();
    const before = await muster.inspector.measure();
    const trial = { kind: 'find', game_mode: 'default', tags: { map: 'ice' }, verification_data: { ticket: 'a' } };
    const { body } = await tryIt(game, trial);
    expect(body.verification).toMatchObject({ game_mode_id: 'default', is_accepted: true, status: 204 });
    expect(body.verification.exchange.body.game).toMatchObject({ tags: { map: 'ice' }, lobby: null });
    expect(provider.requests.map(({ body: sent }) => [sent.verification_data, sent.kind])).toEqual([
      [{ ticket: 'a' }, 'find'],
    ]);
    expect(await muster.inspector.measure()).toEqual(before);
    const { entries } = await muster.api.ok('GET', `/cloud/games/${game.game_id}/audit-log`, {
      token: game.cloud_token,
    });
    expect(entries[0]).toMatchObject({ operation: 'tryVerification', details: { kind: 'find', game_mode: 'default' } });
    expect(JSON.stringify(entries)).not.toContain('ticket');
  });

  test('is refused for a mode, kind or lobby without verification, and to another tenant', async () => {
    const [game, other] = [await makeVerifiedGame(), await makeVerifiedGame()];
    const seat = await find(muster, other);
    const trial = { kind: 'find', game_mode: 'default' };
    const cases: [object, string][] = [
      [{ ...trial, game_mode: 'nothing' }, '404 MATCHMAKER_GAME_MODE_NOT_FOUND'],
      [{ ...trial, game_mode: 'open' }, '400 MATCHMAKER_VERIFICATION_NOT_USED'],
      [{ ...trial, kind: 'join' }, '400 MATCHMAKER_VERIFICATION_NOT_USED'],
      [{ ...trial, kind: 'leave' }, '400 API_BAD_BODY'],
      [{ ...trial, lobby_id: seat.body.lobby.lobby_id }, '404 MATCHMAKER_LOBBY_NOT_FOUND'],
    ];
    provider.requests.length = 0;
    for (const [body, outcome] of cases) expect(outcomeOf(await tryIt(game, body))).toBe(outcome);
    expect(outcomeOf(await tryIt(game, trial, other.cloud_token))).toStartWith('40');
    expect(provider.requests.length).toBe(0);
  });
});

import { afterAll, beforeAll } from 'bun:test';
import { solveChallenge } from 'altcha-lib';
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2';
import type { Answer } from '../api.ts';
import { deploy } from '../game.ts';
import { makeControlledGame } from '../game-server.ts';
import { type Inspector, openInspector } from '../inspector.ts';
import { openTestService, type TestService } from '../service.ts';
import { type CaptchaProvider, openCaptchaProvider } from './captcha-provider.ts';

export const HCAPTCHA = { site_key: 'h-site', secret_key: 'canary-of-hcaptcha' };
export const TURNSTILE = { site_key: 't-site', secret_key: 'canary-of-turnstile' };
export const OUR_SECRET = 'canary-of-ours';
export const TIMES = { requests_before_reverify: 2, verification_ttl: 60_000 };
/** A game mode with all actions enabled and room for many players. */
export const MODE = { actions: { create: { enabled: true, enable_private: true } }, max_players: 250 };
export const BODIES = {
  find: { game_modes: ['default'], regions: ['local'] },
  create: { game_mode: 'default', region: 'local' },
  join: { lobby_id: crypto.randomUUID() },
};

export type CaptchaGame = Awaited<ReturnType<typeof makeControlledGame>>;

/** A service whose providers of captchas are on this machine, for all tests of a file. */
export function shareCaptchaService() {
  const opened = new AsyncDisposableStack();
  const shared: Partial<{ provider: CaptchaProvider; muster: TestService; second: TestService; inspector: Inspector }> =
    {};
  beforeAll(async () => {
    const provider = opened.use(await openCaptchaProvider());
    const settings = {
      ...provider.settings,
      MUSTER_TURNSTILE_SITE_KEY: 'our-site',
      MUSTER_TURNSTILE_SECRET_KEY: OUR_SECRET,
      MUSTER_SITES_DOMAIN: 'sites.example.com',
    };
    const muster = opened.use(await openTestService(settings));
    const second = opened.use(
      await openTestService({ ...settings, MUSTER_DATACENTER: 'far' }, { database_of: muster }),
    );
    Object.assign(shared, { provider, muster, second, inspector: opened.use(openInspector(muster)) });
  }, 300_000);
  afterAll(() => opened.disposeAsync(), 300_000);

  function get<Name extends keyof typeof shared>(name: Name): NonNullable<(typeof shared)[Name]> {
    const value = shared[name];
    if (value === undefined) throw new Error('the service is open while tests run, not while they are collected');
    return value;
  }
  let count = 0;
  return {
    get provider() {
      return get('provider');
    },
    get muster() {
      return get('muster');
    },
    /** A second service on the same database, in another region without players. */
    get second() {
      return get('second');
    },
    get inspector() {
      return get('inspector');
    },
    /** Makes a game whose version has this captcha configuration. */
    async makeGame(captcha: object): Promise<CaptchaGame> {
      const game = await makeControlledGame(get('muster'), { game_modes: { default: MODE } });
      const matchmaker = { ...game.matchmaker, captcha: { ...TIMES, ...captcha } };
      return { ...game, version_id: await deploy(get('muster').api, game, matchmaker) };
    },
    /** Sends a request for seats as a player of the game. */
    send: (game: CaptchaGame, kind: keyof typeof BODIES, body: object = {}, at = get('muster')) =>
      at.api.post(`/matchmaker/lobbies/${kind}`, game.public_token, { ...BODIES[kind], ...body }),
    /** Returns a new captcha for which the provider has this verdict. */
    captcha(behavior = 'ok'): string {
      count += 1;
      return `${behavior}:${count}`;
    },
    async receiptOf({ game_id, namespace_id, cloud_token }: CaptchaGame, { headers }: Answer, at = get('muster')) {
      const receipts = `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/receipts`;
      return (await at.api.ok('GET', `${receipts}/${headers.get('rvt-ray-id')}`, { token: cloud_token })).receipt;
    },
  };
}

/** Returns the member of a request that has a solved captcha. */
export const solved = (client_response: string, name = 'hcaptcha') => ({ captcha: { [name]: { client_response } } });

/** Solves a proof of work with ALTCHA's own client. */
export async function solveWork(challenge: Parameters<typeof solveChallenge>[0]['challenge']) {
  const solution = await solveChallenge({ challenge, deriveKey });
  return solved(Buffer.from(JSON.stringify({ challenge, solution })).toString('base64'), 'pow');
}

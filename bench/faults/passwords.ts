import { makeGame } from '../../tests/support/game.ts';
import { showSite, uploadSite } from '../../tests/support/site.ts';
import { middleOf } from '../report.ts';
import { requestFrom, requestOf } from './connections.ts';
import { calm, exactly, type Fault, type FaultContext, secondsSince } from './fault.ts';
import type { Subject } from './subject.ts';

const ATTACKER = '127.0.0.9';
const ATTACKERS = 16;
const VISITORS = 15;
const TRIES_MAX = 5;
const WAIT_S_MAX = 10;
const COST = 12;
const GUESSES = 5;
const RATIO_MAX = 2;
const PASSWORD = 'the right one';

export const passwords: Fault = {
  name: 'passwords',
  title: `an address guesses passwords of two sites, ${ATTACKERS} at a time, while ${VISITORS} visitors of one have the right one`,
  async run(context) {
    // With the default rate limits, which are part of what is measured.
    const subject = await context.start({ settings: { MUSTER_LIMITS_SCALE: '1' } });
    const other = await makeSite(subject, 1);
    const site = await makeSite(subject, VISITORS);
    await context.phase(subject, 'calm', calm);
    await compareUsers(context, site);

    const attack = guess([other, site]);
    const { result } = await context.phase(subject, 'while passwords are guessed', async () => {
      await Bun.sleep(2_000);
      const tried = Array.from({ length: VISITORS }, async (_, visitor) => {
        await Bun.sleep(visitor * 500);
        return await visit(site, visitor);
      });
      return await Promise.all(tried);
    });
    const outcomes = await attack.stop();
    context.expect(exactly('right passwords accepted', VISITORS, result.filter(({ is_in }) => is_in).length));
    const refused = result.filter(({ was_wrong }) => was_wrong).length;
    context.expect(exactly('visitors refused although their password is right', 0, refused));
    context.note('longest until a visitor was in', `${Math.max(...result.map(({ seconds }) => seconds)).toFixed(1)} s`);
    context.note('answers to the guesses', JSON.stringify(outcomes));
  },
};

interface Site {
  port: number;
  host: string;
}

/** Creates a site with a password and this many users. */
async function makeSite({ program, port }: Subject, users: number): Promise<Site> {
  const { api, administrator_token } = program;
  const game = await makeGame(api, administrator_token);
  const { game_id, namespace_id, cloud_token: token } = game;
  const { name_id } = (await api.ok('GET', `/cloud/games/${game_id}`, { token })).game;
  const site_id = await uploadSite(api, game, { 'index.html': 'the site' });
  await showSite(api, game, { site_id });
  const namespace = `/cloud/games/${game_id}/namespaces/${namespace_id}`;
  const password = await Bun.password.hash(PASSWORD, { algorithm: 'bcrypt', cost: COST });
  for (let user = 0; user < users; user += 1) {
    await api.ok('POST', `${namespace}/auth-user`, { token, body: { user: `user-${user}`, password } });
  }
  await api.ok('PUT', `${namespace}/cdn-auth`, { token, body: { auth_type: 'basic' } });
  return { port, host: `${name_id}.sites.localhost` };
}

function logIn({ port, host }: Site, address: string, user: string, password: string) {
  const authorization = `Basic ${btoa(`${user}:${password}`)}`;
  return requestFrom(address, port, requestOf('GET', '/', { host, authorization }));
}

/** Opens the site with the right password, and tries again after the time in Retry-After. */
async function visit(site: Site, visitor: number): Promise<{ is_in: boolean; was_wrong: boolean; seconds: number }> {
  const started = performance.now();
  let was_wrong = false;
  for (let attempt = 0; attempt < TRIES_MAX; attempt += 1) {
    const { outcome, text = '' } = await logIn(site, `127.0.2.${visitor + 1}`, `user-${visitor}`, PASSWORD);
    if (outcome === '200') return { is_in: true, was_wrong, seconds: secondsSince(started) };
    if (outcome === '401') was_wrong = true;
    const [, wait_s] = /^retry-after: *(\d+)/im.exec(text) ?? [];
    if (wait_s === undefined || Number(wait_s) > WAIT_S_MAX) break;
    await Bun.sleep(Number(wait_s) * 1_000);
  }
  return { is_in: false, was_wrong, seconds: secondsSince(started) };
}

function guess(sites: Site[]) {
  let is_over = false;
  const outcomes: Record<string, number> = {};
  const guessing = Promise.all(
    Array.from({ length: ATTACKERS }, async (_, attacker) => {
      for (let number = 0; !is_over; number += 1) {
        for (const site of sites) {
          const { outcome } = await logIn(site, ATTACKER, 'user-0', `wrong ${attacker} ${number}`);
          outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        }
        await Bun.sleep(10);
      }
    }),
  );
  return {
    async stop() {
      is_over = true;
      await guessing;
      return outcomes;
    },
  };
}

/** Measures the time of a wrong password for a user that exists and for one that does not. */
async function compareUsers(context: FaultContext, site: Site): Promise<void> {
  const times: { known: number[]; unknown: number[] } = { known: [], unknown: [] };
  for (let number = 0; number < GUESSES; number += 1) {
    times.known.push((await logIn(site, `127.0.3.${number + 1}`, 'user-1', `wrong ${number}`)).ms);
    times.unknown.push((await logIn(site, `127.0.4.${number + 1}`, `unknown-${number}`, `wrong ${number}`)).ms);
  }
  const [known, unknown] = [middleOf(times.known), middleOf(times.unknown)];
  const ratio = Math.max(known / unknown, unknown / known);
  context.expect({
    what: 'a wrong password: known user, unknown user',
    limit: `within ${RATIO_MAX}×`,
    figure: `${known.toFixed(0)} ms, ${unknown.toFixed(0)} ms`,
    is_met: ratio <= RATIO_MAX,
  });
}

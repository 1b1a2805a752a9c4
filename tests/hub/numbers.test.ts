import { beforeAll, describe, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { makeControlledGame } from '../support/game-server.ts';
import { WITHOUT_PAGES } from '../support/hub/browser.ts';
import { shareChromium } from '../support/hub/hub-page.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
const chromium = shareChromium(muster);
const TOO_LARGE = '1000000000000';
const MINUTE_MS = 60_000;

describe.skipIf(WITHOUT_PAGES !== undefined)('hub: a number in a form', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let path: string;
  beforeAll(async () => {
    const create = { enabled: true, enable_public: true };
    game = await makeControlledGame(muster, {
      game_modes: { default: { max_players: 3, allow_dynamic_max_players: true, actions: { create } } },
    });
    const answer = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    path = `/hub/${answer.game.name_id}/prod`;
  });

  /** Returns what the browser says of a field, which has the focus after its form was not sent. */
  const refusalOf = (page: Page, label: string) =>
    page
      .getByLabel(label)
      .and(page.locator(':focus:invalid'))
      .evaluate((field: HTMLInputElement) => field.validationMessage);
  const setLimits = (lobby_count_max: number, max_players: number) =>
    muster.api.call('POST', `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/mm-config`, {
      token: game.cloud_token,
      body: { lobby_count_max, max_players },
    });
  const drain = async (minutes: number) => {
    const { machines } = await muster.api.ok('GET', '/cloud/machines', { token: muster.administrator_token });
    return await muster.api.call('PUT', `/cloud/machines/${machines[0].machine_id}/drain`, {
      token: muster.administrator_token,
      body: { deadline_ms: minutes * MINUTE_MS },
    });
  };
  const create = (max_players: number) =>
    muster.api.call('POST', '/matchmaker/lobbies/create', {
      token: game.public_token,
      body: { game_mode: 'default', max_players },
    });

  interface NumberField {
    label: string;
    max: number;
    address: () => string;
    /** The button that opens the form. */
    opened_by?: string;
    sent_by: string;
    /** Sends a number to the service without the page. */
    send?: (value: number) => Promise<{ status: number }>;
  }
  const fields: NumberField[] = [
    {
      label: 'Lobbies at once',
      max: 32_767,
      address: () => `${path}/settings`,
      sent_by: 'Save limits',
      send: (value) => setLimits(value, 1),
    },
    {
      label: 'Players of one address',
      max: 2_147_483_647,
      address: () => `${path}/settings`,
      sent_by: 'Save limits',
      send: (value) => setLimits(1, value),
    },
    {
      label: 'Minutes',
      max: 10_080,
      address: () => '/hub/~operator',
      opened_by: 'Drain',
      sent_by: 'Drain',
      send: drain,
    },
    { label: 'Seats', max: 256, address: () => path, opened_by: 'New lobby', sent_by: 'Create it', send: create },
    { label: 'Bots', max: 1_000, address: () => `${path}/try`, sent_by: 'Start' },
    { label: 'Players of a party', max: 256, address: () => `${path}/try`, sent_by: 'Start' },
  ];

  for (const { label, max, address, opened_by, sent_by, send } of fields) {
    test(`that is too large, or none, is refused with its range: ${label}`, async () => {
      await using opened = await chromium.open(address());
      const { page, problems } = opened;
      if (opened_by !== undefined) await page.getByRole('button', { name: new RegExp(`^${opened_by}`) }).click();
      const form = page.locator('form').filter({ has: page.getByLabel(label) });
      const sent: string[] = [];
      page.on('request', (request) => {
        // The page gets tokens of its session at any time.
        if (request.method() !== 'GET' && !request.url().includes('/hub/session')) sent.push(request.url());
      });
      for (const value of [TOO_LARGE, String(max + 1), '0', '1.5', 'many']) {
        await form.getByLabel(label).fill(value);
        await form.getByRole('button', { name: sent_by, exact: true }).click();
        expect(await refusalOf(page, label)).toBe(
          `"${label}" must be a whole number from 1 to ${max.toLocaleString('en')}.`,
        );
      }
      expect(sent).toEqual([]);
      await form.getByLabel(label).fill(String(max));
      expect(await form.locator('input:invalid').count()).toBe(0);
      // The page knows the limits of the service.
      if (send) expect((await send(max + 1)).status).toBe(400);
      expect(problems).toEqual([]);
    });
  }

  test('does not keep a question from being cancelled', async () => {
    await using opened = await chromium.open('/hub/~operator');
    const { page } = opened;
    await page.getByRole('button', { name: /^Drain / }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Minutes').fill(TOO_LARGE);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'hidden' });
  });
});

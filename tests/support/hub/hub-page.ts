import { afterAll, beforeAll, expect } from 'bun:test';
import { join, resolve } from 'node:path';
import axe from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { Api } from '../api.ts';
import { WAIT_MS, waitFor } from '../wait.ts';
import { launchChromium, WITHOUT_PAGES } from './browser.ts';

/** Where pictures of the pages are kept, for people to look at. */
const PICTURES = resolve(import.meta.dir, '../../../dist/pictures');
const LAUNCH_TIMEOUT_MS = 300_000;
const WIDTHS = { wide: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } } as const;
const SCHEMES = ['light', 'dark'] as const;

/** A page of the hub in a browser of its own, and the problems that the browser reports. */
export interface HubPage extends AsyncDisposable {
  page: Page;
  context: BrowserContext;
  /** Uncaught errors, errors on the console, refusals by the policy, and requests of other origins. */
  problems: string[];
}

/** The service whose pages are opened. */
interface Opened {
  api: Api;
  administrator_token: string;
  config: { public_url: string };
}

/** Shares a Chromium among the tests of a file. */
export function shareChromium(muster: Opened) {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (WITHOUT_PAGES === undefined) browser = await launchChromium();
  }, LAUNCH_TIMEOUT_MS);
  afterAll(async () => {
    await browser?.close();
    if (WITHOUT_PAGES !== undefined) console.log(`Not tried, because ${WITHOUT_PAGES}: the pages of the hub.`);
  });

  /** Opens an empty page, which is not logged in. */
  async function openPage(): Promise<HubPage> {
    if (!browser) throw new Error('the browser is open while tests run');
    const context = await browser.newContext({ viewport: WIDTHS.wide });
    context.setDefaultTimeout(WAIT_MS);
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
    // The console also reports each refused request. Those are no problems: tests cause them on purpose.
    page.on('console', (line) => {
      if (line.type() === 'error' && !line.text().startsWith('Failed to load resource')) {
        problems.push(`console: ${line.text()}`);
      }
    });
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol.startsWith('http') && origin !== muster.config.public_url)
        problems.push(`request: ${request.url()}`);
    });
    return { page, context, problems, [Symbol.asyncDispose]: () => context.close() };
  }

  /** Makes a link that opens a path of the hub logged in. */
  async function linkTo(path: string, token = muster.administrator_token): Promise<string> {
    const { url } = await muster.api.ok('POST', '/hub/links', { token, body: {} });
    const link = new URL(url);
    return `${link.origin}${path}${link.hash}`;
  }

  return {
    openPage,
    linkTo,
    /** Opens a path of the hub, logged in. */
    async open(path: string, token?: string): Promise<HubPage> {
      const opened = await openPage();
      await opened.page.goto(await linkTo(path, token));
      // A page that is left before its link was exchanged is not logged in.
      await waitFor(async () => (await opened.context.cookies()).length > 0, 'the session of the browser');
      return opened;
    },
  };
}

/** Returns the accessibility violations that axe calls serious or critical. */
async function findViolations(page: Page): Promise<string[]> {
  const has_axe = await page.evaluate(() => 'axe' in globalThis);
  if (!has_axe) await page.evaluate(axe.source);
  // The colors of log lines are those that the game server chose. Of hundreds of similar lines, some are enough.
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: typeof axe }).axe.run({ exclude: ['.line [style]', '.line:nth-child(n + 40)'] }),
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`));
}

/** Returns the words of tables that a line break divides. A cell of long texts, such as JSON, may divide them. */
async function findDividedWords(page: Page): Promise<string[]> {
  return await page.evaluate(() =>
    [...document.querySelectorAll('th, td:not(.wide)')].flatMap((cell) => {
      const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      const divided: string[] = [];
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (const { index, 0: word } of (node.textContent ?? '').matchAll(/\w+/g)) {
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          if (range.getClientRects().length > 1) divided.push(word);
        }
      }
      return divided;
    }),
  );
}

/**
 * Takes pictures of a page in both widths and both color schemes: of the window, or of the whole page. Fails if the page is
 * wider than the window in one of them, divides words of tables, or has accessibility violations.
 */
export async function takePictures({ page }: HubPage, name: string, { is_whole = false } = {}): Promise<void> {
  for (const [width_name, size] of Object.entries(WIDTHS)) {
    await page.setViewportSize(size);
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      const path = join(PICTURES, `${name}-${width_name}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: is_whole });
      expect({ name, width_name, colorScheme, found: await findViolations(page) }).toMatchObject({ found: [] });
    }
    const excess = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    const divided = await findDividedWords(page);
    expect({ name, width_name, excess, divided }).toEqual({ name, width_name, excess: 0, divided: [] });
  }
  await page.setViewportSize(WIDTHS.wide);
}

import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../../tests/support/hub/browser.ts';
import type { Program } from '../../tests/support/program.ts';
import { processorSeconds } from '../meter.ts';

/** A page in a browser with a new profile. */
export interface OpenPage extends AsyncDisposable {
  page: Page;
  browser: Browser;
  /** Errors on the console, among them refusals by the page's policy. */
  errors: string[];
}

export async function openPage(): Promise<OpenPage> {
  const browser = await launchChromium();
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  const errors: string[] = [];
  page.on('pageerror', ({ message }) => errors.push(message));
  page.on('console', (line) => {
    if (line.type() === 'error') errors.push(line.text());
  });
  return { page, browser, errors, [Symbol.asyncDispose]: () => browser.close() };
}

/** Makes a link that opens a path of the hub logged in, once. */
export async function linkTo({ api, administrator_token }: Program, path: string): Promise<string> {
  const { url } = await api.ok('POST', '/hub/links', { token: administrator_token, body: {} });
  const link = new URL(url);
  return `${link.origin}${path}${link.hash}`;
}

/** Returns the processor seconds that the renderers of a browser have used. */
export async function rendererSeconds(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  return processInfo.filter(({ type }) => type === 'renderer').reduce((sum, { id }) => sum + processorSeconds(id), 0);
}

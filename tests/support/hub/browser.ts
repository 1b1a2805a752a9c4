import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';
import { IS_FULL_LENGTH } from '../full-length.ts';
import { WAIT_MS } from '../wait.ts';

const CHROMIUM = Bun.which('chromium');
const CERTUTIL = Bun.which('certutil');
/** What else a browser does at its start on a machine without the internet, and what it needs as root. */
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'];

/** Why no browser can be tried here; undefined if one can. */
export const WITHOUT_BROWSER = !IS_FULL_LENGTH
  ? 'only a run at full length tries it'
  : CHROMIUM === null || CERTUTIL === null
    ? 'install chromium and libnss3-tools'
    : undefined;

/** Why no page of the hub can be tried here; undefined if one can. */
export const WITHOUT_PAGES = !IS_FULL_LENGTH
  ? 'only a run at full length tries it'
  : CHROMIUM === null
    ? 'install chromium'
    : undefined;

/** Starts Chromium for pages that need no certificates. Each test has a context of its own. */
export function launchChromium() {
  return chromium.launch({ executablePath: CHROMIUM ?? '', args: ARGS, timeout: WAIT_MS });
}

export interface Browser extends AsyncDisposable {
  context: BrowserContext;
}

/** Starts Chromium with a new profile that trusts a certificate authority, given as a file. */
export async function openBrowser({ ca_file }: { ca_file: string }): Promise<Browser> {
  const home = await mkdtemp(join(tmpdir(), 'muster-browser-'));
  const certificates = join(home, '.pki/nssdb');
  await mkdir(certificates, { recursive: true });
  await Bun.$`${CERTUTIL} -d sql:${certificates} -N --empty-password`.quiet();
  await Bun.$`${CERTUTIL} -d sql:${certificates} -A -t C,, -n muster -i ${ca_file}`.quiet();
  const context = await chromium.launchPersistentContext(join(home, 'profile'), {
    executablePath: CHROMIUM ?? '',
    args: ARGS,
    env: { ...process.env, HOME: home },
    timeout: WAIT_MS,
  });
  context.setDefaultTimeout(WAIT_MS);
  return {
    context,
    async [Symbol.asyncDispose]() {
      await context.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}

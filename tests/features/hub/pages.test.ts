import { describe, expect, test } from 'bun:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { readBundle } from '../../../src/features/hub/bundle.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService();
const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

const fetchAt = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${muster.config.public_url}${path}`, { headers, decompress: false });

/** The paths of the files that the page loads. */
async function filesOfPage(): Promise<string[]> {
  const page = await (await fetchAt('/', { ...BROWSER, 'accept-encoding': 'identity' })).text();
  return [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);
}

describe('hub: the page', () => {
  test('is at / for browsers, and programs get JSON there', async () => {
    const page = await fetchAt('/', BROWSER);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    for (const accept of ['*/*', 'application/json']) {
      const answer = await fetchAt('/', { accept });
      expect([answer.status, (await answer.json()).code]).toEqual([404, 'API_NOT_FOUND']);
    }
    expect(page.headers.get('vary')).toContain('Accept');
  });

  test('is at every path of the hub, also to HEAD', async () => {
    for (const path of ['/hub', '/hub/demo', '/hub/demo/prod', '/hub/demo/prod/servers', '/hub/demo/prod/why/1']) {
      expect((await fetchAt(path, BROWSER)).status).toBe(200);
      expect((await fetch(`${muster.config.public_url}${path}`, { method: 'HEAD' })).status).toBe(200);
    }
  });

  test('has a policy that allows nothing inline, nothing from elsewhere and no frame', async () => {
    const { headers } = await fetchAt('/', BROWSER);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).not.toContain('unsafe');
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      'trusted-types muster-bots',
    ]) {
      expect(policy).toContain(part);
    }
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cache-control')).toBe('no-cache');
  });

  test('names its files by their content, and browsers keep these for good', async () => {
    const files = await filesOfPage();
    expect(files.length).toBe(3);
    for (const path of files) {
      expect(path).toMatch(/^\/hub-files\/[a-z]+-[a-z0-9]{8}\.(js|css|svg)$/);
      const { status, headers } = await fetchAt(path);
      expect(status).toBe(200);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    }
    expect((await fetchAt('/hub-files/nothing.js')).status).toBe(404);
    // There, the page would be without its policy.
    expect((await fetchAt('/hub-files/index.html')).status).toBe(404);
    expect((await fetchAt('/hub-files/..%2findex.html')).status).toBe(404);
  });

  test('lets only the script of the bots, which has only a public token, reach other addresses', async () => {
    const [script = ''] = (await filesOfPage()).filter((path) => path.endsWith('.js'));
    const [worker = ''] = /\/hub-files\/worker-\w+\.js/.exec(await (await fetchAt(script)).text()) ?? [];
    const { status, headers } = await fetchAt(worker);
    expect(status).toBe(200);
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; connect-src 'self' ws: wss:");
    expect((await fetchAt(script)).headers.get('content-security-policy') ?? '').not.toContain('connect-src');
  });

  test('is compressed for those that accept it, and each coding has the same content', async () => {
    for (const path of await filesOfPage()) {
      const plain = await fetchAt(path, { 'accept-encoding': 'identity' });
      expect(plain.headers.get('content-encoding')).toBeNull();
      const content = Buffer.from(await plain.arrayBuffer());
      const brotli = await fetchAt(path, { 'accept-encoding': 'gzip, deflate, br, zstd' });
      expect(brotli.headers.get('content-encoding')).toBe('br');
      expect(brotli.headers.get('vary')).toContain('Accept-Encoding');
      expect(brotliDecompressSync(await brotli.arrayBuffer()).equals(content)).toBe(true);
      const gzip = await fetchAt(path, { 'accept-encoding': 'gzip, deflate' });
      expect(gzip.headers.get('content-encoding')).toBe('gzip');
      expect(gunzipSync(await gzip.arrayBuffer()).equals(content)).toBe(true);
    }
  });

  test('has scripts of at most 80 kB in all, also those that it loads when they are needed', async () => {
    const bundle = await readBundle();
    const scripts = [...bundle].filter(([name]) => name.endsWith('.js.br'));
    expect(scripts.length).toBeGreaterThan(2);
    const sizes = scripts.map(([name, { byteLength }]) => `${name} ${byteLength}`);
    console.log(`scripts of the hub: ${sizes.join(', ')}`);
    expect(scripts.reduce((sum, [, { byteLength }]) => sum + byteLength, 0)).toBeLessThan(80_000);
  });
});

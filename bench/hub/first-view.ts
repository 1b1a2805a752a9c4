import { brotliCompressSync } from 'node:zlib';
import { readBundle } from '../../src/features/hub/bundle.ts';
import type { Program } from '../../tests/support/program.ts';
import { report, type Samples } from '../samples.ts';
import { linkTo, openPage } from './browser.ts';

const REPETITIONS = 9;

/** Measures the time from an address to what it shows first, each time in a browser with a new profile. */
export async function measureFirstView(opened: AsyncDisposableStack, program: Program): Promise<Samples[]> {
  const peer = await openStaticPage(opened);
  const samples: Samples[] = [
    { name: 'a static page of this size, by bare Bun', milliseconds: [] },
    { name: 'the hub, to the form to log in', milliseconds: [] },
    { name: 'the hub, by a link, to the list of games', milliseconds: [] },
  ];
  // The first repetition compiles the service's code.
  for (let repetition = -1; repetition < REPETITIONS; repetition += 1) {
    const visits = [
      { url: peer, text: 'Shown' },
      { url: `${program.url}/`, text: 'Or paste a token' },
      { url: await linkTo(program, '/'), text: 'players now' },
    ];
    for (const [index, visit] of visits.entries()) {
      const took_ms = await visitOnce(visit);
      if (repetition >= 0) samples[index]?.milliseconds.push(took_ms);
    }
  }
  report('First view', samples, 'median 1000 ms');
  return samples;
}

async function visitOnce({ url, text }: { url: string; text: string }): Promise<number> {
  await using opened = await openPage();
  const { page, errors } = opened;
  const started = performance.now();
  await page.goto(url, { waitUntil: 'commit' });
  await page.getByText(text).first().waitFor();
  const took_ms = performance.now() - started;
  await page.waitForLoadState('networkidle');
  if (errors.length > 0) throw new Error(`${url}: ${errors.join('; ')}`);
  return took_ms;
}

/** Serves a page with the styles and scripts of the hub. The browser reads the scripts as comments, and runs none. */
async function openStaticPage(opened: AsyncDisposableStack): Promise<string> {
  const bundle = await readBundle();
  const page = new TextDecoder().decode(bundle.get('index.html'));
  const files = new Map<string, Response>();
  for (const [name, content] of bundle) {
    if (!page.includes(name) || !/\.(js|css)$/.test(name)) continue;
    const is_script = name.endsWith('.js');
    const text = new TextDecoder().decode(content);
    const served = is_script ? `/*${text.replaceAll('*/', '* /')}*/document.body.append('Shown')` : text;
    files.set(
      name,
      new Response(brotliCompressSync(served), {
        headers: { 'content-encoding': 'br', 'content-type': is_script ? 'text/javascript' : 'text/css' },
      }),
    );
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ url }) {
      const file = files.get(new URL(url).pathname.split('/').at(-1) ?? '');
      return file?.clone() ?? new Response(page, { headers: { 'content-type': 'text/html' } });
    },
  });
  opened.defer(() => server.stop(true));
  return server.url.href;
}

import type { Page } from 'playwright-core';
import { commandOf, makeHome, type Program } from '../../tests/support/program.ts';
import type { ManyLobbies } from '../many-lobbies.ts';
import { report, type Samples } from '../samples.ts';
import { settingsOn } from '../second-process.ts';
import { linkTo, openPage } from './browser.ts';

const FINDS = 40;

/** Measures how long after the answer to a find, by another process on the same database, its seat is on a page. */
export async function measureSeats(opened: AsyncDisposableStack, many: ManyLobbies, path: string): Promise<Samples[]> {
  const other = await startOther(opened, many);
  const samples: Samples[] = [
    { name: 'a text by a bare WebSocket', milliseconds: await measureBareSocket() },
    { name: 'a seat', milliseconds: [] },
    { name: 'a seat, from when the find was sent', milliseconds: [] },
  ];
  await using view = await openPage();
  const { page, errors } = view;
  await page.goto(await linkTo(many.program, path));
  const seats = page.locator('.seats[aria-label^="0 connected, 1 reserved"]').first();
  await seats.waitFor();
  await page.waitForLoadState('networkidle');
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  for (let number = 2; number < 2 + FINDS; number += 1) {
    const shown = untilShown(page, `.seats[aria-label^="0 connected, ${number} reserved"]`);
    const sent = Date.now();
    await other.api.ok('POST', '/matchmaker/lobbies/find', {
      token: many.game.public_token,
      body: { game_modes: ['default'], regions: ['local'] },
    });
    const answered = Date.now();
    const shown_at = await shown;
    samples[1]?.milliseconds.push(Math.max(0, shown_at - answered));
    samples[2]?.milliseconds.push(shown_at - sent);
  }
  if (requests.length > 0 || errors.length > 0) throw new Error([...requests, ...errors].join('; '));
  report('A find in another process is on the page', samples, 'p95 150 ms');
  return samples;
}

async function startOther(opened: AsyncDisposableStack, { connection }: ManyLobbies): Promise<Program> {
  const home = opened.use(
    await makeHome({
      MUSTER_DEMO: 'off',
      MUSTER_DATACENTER: 'elsewhere',
      MUSTER_SEAT_TIMEOUT_MS: '3600000',
      ...settingsOn(connection),
    }),
  );
  return await home.start({ command: commandOf('source') });
}

/** Returns when an element is in the page, in Unix milliseconds. */
function untilShown(page: Page, selector: string): Promise<number> {
  return page.evaluate(
    (wanted) =>
      new Promise<number>((resolve) => {
        const look = () => {
          if (!document.querySelector(wanted)) return;
          observer.disconnect();
          resolve(Date.now());
        };
        const observer = new MutationObserver(look);
        observer.observe(document, { subtree: true, childList: true, attributes: true });
        look();
      }),
    selector,
  );
}

/** Measures the same with a page that shows what a bare socket of Bun sends. */
async function measureBareSocket(): Promise<number[]> {
  const script = `new WebSocket(location.href.replace('http', 'ws')).onmessage = ({ data }) => { document.body.className = data; }`;
  const connected = Promise.withResolvers<void>();
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request, bare) {
      if (request.headers.has('upgrade')) return bare.upgrade(request) ? undefined : new Response('', { status: 400 });
      return new Response(`<body><script>${script}</script>`, { headers: { 'content-type': 'text/html' } });
    },
    websocket: {
      open(socket) {
        socket.subscribe('all');
        connected.resolve();
      },
      message() {},
    },
  });
  await using view = await openPage();
  await view.page.goto(server.url.href);
  await connected.promise;
  const milliseconds: number[] = [];
  for (let number = 0; number < FINDS; number += 1) {
    const shown = untilShown(view.page, `.text${number}`);
    await Bun.sleep(20);
    const sent = Date.now();
    server.publish('all', `text${number}`);
    milliseconds.push((await shown) - sent);
  }
  return milliseconds;
}

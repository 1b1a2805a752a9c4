import type { Page } from 'playwright-core';
import { changeLobbies, type ManyLobbies } from '../many-lobbies.ts';
import { type Goal, within } from '../report.ts';
import { percentile, report } from '../samples.ts';
import { linkTo, openPage, rendererSeconds } from './browser.ts';

const CHANGES_PER_SECOND = 50;
const SCROLL_EVERY_MS = 1_000;
const LIMITS = { share_of_core: 0.15, heap_bytes: 100_000_000, scroll_ms: 200 };
/** Lobbies that the page shows without a scroll, and some more. */
const VISIBLE_ROWS = 20;

/** Measures a page with the list of lobbies: idle, while lobbies change anywhere or in sight, and while it is scrolled. */
export async function measureList(many: ManyLobbies, path: string, seconds: number): Promise<Goal[]> {
  await using view = await openPage();
  const { page, browser, errors } = view;
  await page.goto(await linkTo(many.program, path));
  await page.getByText(`${many.lobby_ids.length} of ${many.lobby_ids.length}`).waitFor();
  await page.waitForLoadState('networkidle');
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const heapBytes = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? Number.NaN;
  };
  /** Returns the share of a core of the renderer during some work, and the largest heap. */
  const meter = async (name: string, work: () => Promise<unknown>) => {
    const before = await rendererSeconds(browser);
    const started = performance.now();
    let heap = await heapBytes();
    const timer = setInterval(async () => {
      heap = Math.max(heap, await heapBytes());
    }, 1_000);
    await work();
    clearInterval(timer);
    const share = ((await rendererSeconds(browser)) - before) / ((performance.now() - started) / 1_000);
    console.log(
      `${name}: renderer ${(100 * share).toFixed(1)} % of a core, heap ${(heap / 1e6).toFixed(1)} MB at most`,
    );
    return { share, heap };
  };
  const rate = { per_second: CHANGES_PER_SECOND, seconds };
  await meter('nothing changes', () => Bun.sleep(10_000));
  const anywhere = await meter('changes anywhere', () => changeLobbies(many, rate));
  const { rows } = await many.program.api.ok(
    'GET',
    `/cloud/games/${many.game.game_id}/namespaces/${many.game.namespace_id}/matchmaker/lobbies?count=${VISIBLE_ROWS}`,
    { token: many.program.administrator_token },
  );
  const seen_ids = rows.map(({ lobby_id }: { lobby_id: string }) => lobby_id);
  const visible = await meter('changes in sight', () => changeLobbies({ ...many, lobby_ids: seen_ids }, rate));
  const scrolls: number[] = [];
  await meter('changes anywhere, scrolled', () =>
    Promise.all([changeLobbies(many, rate), scrollAround(page, { many, seconds, scrolls })]),
  );
  if (errors.length > 0) throw new Error(errors.join('; '));
  report('A scroll to a row far away, until its row is there', [{ name: 'scroll', milliseconds: scrolls }]);
  return [
    shareGoal('renderer, changes anywhere', LIMITS.share_of_core, anywhere.share),
    shareGoal('renderer, changes in sight', LIMITS.share_of_core, visible.share),
    {
      what: 'heap',
      limit: `<= ${LIMITS.heap_bytes / 1e6} MB`,
      figure: `${(Math.max(anywhere.heap, visible.heap) / 1e6).toFixed(1)} MB`,
      is_met: Math.max(anywhere.heap, visible.heap) <= LIMITS.heap_bytes,
    },
    within('scroll, p95', LIMITS.scroll_ms, percentile({ name: 'scroll', milliseconds: scrolls }, 0.95)),
  ];
}

function shareGoal(what: string, limit: number, share: number): Goal {
  const percent = (part: number) => `${(100 * part).toFixed(1)} %`;
  return { what, limit: `<= ${percent(limit)}`, figure: percent(share), is_met: share <= limit };
}

/** Scrolls to one row after another, and records how long each takes to be shown. */
async function scrollAround(
  page: Page,
  { many, seconds, scrolls }: { many: ManyLobbies; seconds: number; scrolls: number[] },
): Promise<void> {
  const end = performance.now() + seconds * 1_000;
  while (performance.now() < end) {
    const row = Math.floor(Math.random() * many.lobby_ids.length);
    scrolls.push(await scrollTo(page, row));
    await Bun.sleep(SCROLL_EVERY_MS);
  }
}

/** Returns the milliseconds until a row is in the document after a scroll to it. */
function scrollTo(page: Page, row: number): Promise<number> {
  return page.evaluate(
    (wanted) =>
      new Promise<number>((resolve, reject) => {
        const list = document.querySelector<HTMLElement>('ul[aria-label="Lobbies"]');
        const row = list?.firstElementChild;
        if (!list || !row) return reject(new Error('there is no list'));
        const begun = performance.now();
        window.scrollTo(0, list.offsetTop + wanted * row.getBoundingClientRect().height);
        const look = () => {
          if (list.querySelector(`[aria-posinset="${wanted + 1}"]`)) resolve(performance.now() - begun);
          else requestAnimationFrame(look);
        };
        look();
      }),
    row,
  );
}

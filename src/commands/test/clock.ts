import type { Clock } from '../../platform/clock.ts';

const ADVANCE_MS_MAX = 10 * 365 * 24 * 3_600_000;

/** The machine's clock, which tests can move forward. */
export interface MovableClock extends Clock {
  advance(milliseconds: number): void;
}

export function createMovableClock(): MovableClock {
  let ahead_ms = 0;
  return {
    now: () => new Date(Date.now() + ahead_ms),
    advance(milliseconds) {
      ahead_ms += milliseconds;
    },
  };
}

/**
 * Serves a clock: POST with `{"advance_ms": 60000}` moves it and answers `{"now": "…"}`. It has an address
 * of its own, which only the tests get, so that no request to the service changes the time.
 */
export function openClockPort(clock: MovableClock, port: number): { url: string } & AsyncDisposable {
  const path = `/${crypto.randomUUID()}`;
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port,
    development: false,
    async fetch(request) {
      if (new URL(request.url).pathname !== path) return new Response('not the address of the clock', { status: 404 });
      if (request.method === 'POST') {
        const advance_ms = readAdvance(await request.text());
        if (advance_ms === undefined) return new Response(EXPECTED, { status: 400 });
        clock.advance(advance_ms);
      }
      return Response.json({ now: clock.now().toISOString() });
    },
  });
  return { url: `http://127.0.0.1:${port}${path}`, [Symbol.asyncDispose]: () => server.stop(true) };
}

const EXPECTED = `expected {"advance_ms": …}, a whole number from 0 to ${ADVANCE_MS_MAX}: the clock only goes forwards\n`;

function readAdvance(body: string): number | undefined {
  try {
    const { advance_ms } = JSON.parse(body);
    return Number.isInteger(advance_ms) && advance_ms >= 0 && advance_ms <= ADVANCE_MS_MAX ? advance_ms : undefined;
  } catch {
    return undefined;
  }
}

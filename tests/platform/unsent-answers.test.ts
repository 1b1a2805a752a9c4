import { expect, test } from 'bun:test';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { createPort, type PortHandlers } from '../../src/platform/http/ports/listen.ts';
import { createUnsentAnswers } from '../../src/platform/http/ports/unsent-answers.ts';
import { findFreePort } from '../support/network/test-ports.ts';

const FETCHES: Record<string, PortHandlers['fetch']> = {
  'whose status Bun cannot send': () => Response.error(),
  'whose body was read already': async () => {
    const answer = new Response('read');
    await answer.text();
    return answer;
  },
  'that was never made': () => {
    throw new Error('https://play.example.com/?token=secret');
  },
};

test.each(Object.entries(FETCHES))(
  'port: in place of an answer %s, the caller gets an error',
  async (_, fetchAnswer) => {
    const events: ServiceEvent[] = [];
    const answerUnsent = createUnsentAnswers({
      events: { emit: (event) => void events.push(event) },
      public_url: 'https://play.example.com',
    });
    const port = findFreePort();
    const opened = createPort({ host: '127.0.0.1', port, request_timeout_ms: 1_000, hold_file: undefined });
    const handlers = { answerUnsent, endServersOnPort: async () => 0 };
    await opened.setHandlers({ ...handlers, fetch: () => new Response('starting') });
    await opened.setHandlers({ ...handlers, fetch: fetchAnswer });
    const answer = await fetch(`http://127.0.0.1:${port}/?token=secret`);
    const text = await answer.text();
    expect([answer.status, JSON.parse(text)]).toMatchObject([500, { code: 'ERROR' }]);
    expect(text).not.toContain('secret');
    const ray_id = answer.headers.get('rvt-ray-id');
    expect(events).toMatchObject([{ event: 'unexpected_failure', ray_id }]);
    await opened.stop();
  },
);

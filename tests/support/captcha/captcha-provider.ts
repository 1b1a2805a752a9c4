import type { Socket } from 'node:net';
import { hostileTargets } from '../network/hostile-target.ts';
import { answerText, isWhole, listenAt } from '../network/listener.ts';

const SLOW_MS = 2_600;
const HOSTILE = hostileTargets('http://127.0.0.1:1/');
const json = (body: unknown, status = 200) => answerText(status, { body: JSON.stringify(body) });
const accept = (more: object = {}) =>
  json({ success: true, challenge_ts: '2026-01-01T00:00:00Z', hostname: 'play.example.com', ...more });
const refuse = (...codes: string[]) => json({ success: false, 'error-codes': codes });

/**
 * The answers of a provider, by the part of the captcha before its colon: "ok:1", "ok:2" and so on are all accepted.
 */
const ANSWERS: Record<string, (form: URLSearchParams) => string> = {
  ok: () => accept(),
  wrong: () => refuse('invalid-input-response'),
  duplicate: () => refuse('timeout-or-duplicate'),
  'wrong-400': () => json({ success: false, 'error-codes': ['bad-request'] }, 400),
  'bad-secret': () => refuse('invalid-input-secret'),
  'internal-error': () => refuse('internal-error'),
  'other-hostname': () => accept({ hostname: 'evil.example' }),
  'below-hostname': () => accept({ hostname: 'Eu.Play.example.com' }),
  'no-hostname': () => accept({ hostname: undefined }),
  'other-sitekey': () => accept({ sitekey: 'another-site' }),
  'as-text': () => json({ success: 'true' }),
  'yes-500': () => json({ success: true }, 500),
  '403': () => answerText(403, { body: 'blocked' }),
  '429': () => answerText(429),
  '500': () => answerText(500),
  html: () => answerText(200, { body: '<html>maintenance</html>' }),
  empty: () => answerText(200),
  list: () => json([true]),
  nothing: () => json(null),
  'strange-codes': () =>
    json({ success: false, 'error-codes': ['a\u0000b', 7, 'x'.repeat(10_000), 'fine-code', null] }),
};

export type CaptchaProvider = Awaited<ReturnType<typeof openCaptchaProvider>>;

/**
 * A provider of captchas on this machine; `hcaptcha` and `turnstile` are its addresses. Each captcha chooses its answer
 * by the part before its colon: a name of the list above, or of a hostile target. `cut-once:`
 * cuts the first connection, and accepts the captcha the second time. `slow:` accepts after more than half of 5 s.
 */
export async function openCaptchaProvider() {
  const requests: { path: string; form: Record<string, string> }[] = [];
  const seen = new Set<string>();

  function answer(socket: Socket, received: string): void {
    const [head = '', body = ''] = received.split('\r\n\r\n');
    const form = new URLSearchParams(body);
    requests.push({ path: head.split(' ')[1] ?? '', form: Object.fromEntries(form) });
    const captcha = form.get('response') ?? '';
    const name = captcha.slice(0, captcha.lastIndexOf(':'));
    const hostile = HOSTILE[name];
    if (hostile) {
      hostile.serve(socket);
      // A hostile target waits for a request, which has arrived already.
      socket.emit('data', Buffer.from(received, 'latin1'));
    } else if (name === 'slow') setTimeout(() => socket.end(accept()), SLOW_MS);
    else if (name === 'cut-once' && !seen.has(captcha)) socket.destroy();
    else
      socket.end(
        (name === 'cut-once' ? accept : (ANSWERS[name] ?? (() => refuse('invalid-input-response'))))(form as never),
      );
    seen.add(captcha);
  }

  const listener = await listenAt('127.0.0.1', (socket) => {
    let received = '';
    const listen = (piece: Buffer) => {
      received += piece.toString('latin1');
      if (!isWhole(received)) return;
      socket.off('data', listen);
      answer(socket, received);
    };
    socket.on('data', listen);
  });
  const origin = `http://127.0.0.1:${listener.port}`;
  return {
    hcaptcha: `${origin}/hcaptcha`,
    turnstile: `${origin}/turnstile`,
    /** The settings of a service that uses it. */
    settings: { MUSTER_HCAPTCHA_URL: `${origin}/hcaptcha`, MUSTER_TURNSTILE_URL: `${origin}/turnstile` },
    /** Returns the requests that it received, for one captcha or for all. */
    requestsOf: (captcha?: string) => requests.filter(({ form }) => captcha === undefined || form.response === captcha),
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

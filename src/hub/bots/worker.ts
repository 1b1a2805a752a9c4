// A worker, which its page starts and ends. It lets bots play, because game servers have addresses of their own, which the
// policy of the page does not let the page reach. Or it solves one proof of work.
import { type BotSeat, toSocketUrl } from '../../shared/ports.ts';
import { ANSWER_WITHIN_MS } from '../../shared/request-time.ts';
import { solveWork } from './proof-of-work.ts';
import { type BotsTask, WITHOUT_CRYPTOGRAPHY, type WorkerTask } from './protocol.ts';
import { Tally } from './tally.ts';

const REPORT_EVERY_MS = 250;
const STAY_MS = { min: 1_000, max: 8_000 };
const PAUSE_AFTER_REFUSAL_MS = 1_000;
const OPEN_WITHIN_MS = 10_000;
/** A browser sends no more requests to one host at once, and fails waiting ones if there are many. */
const FINDS_AT_ONCE = 6;
/** A browser slows down sockets if more of them open at once, and allows 255 in all. */
const SOCKETS_OPENING_MAX = 8;
const SOCKETS_MAX = 200;
/** How long a bot without a socket waits: by default, a seat is reserved for this long. */
const RESERVED_FOR_MS = 120_000;
/** The time between the starts of two bots. */
const START_EVERY_MS = 5;

/** The part of an answer to a find that bots use. */
interface Seat extends BotSeat {
  lobby: { lobby_id: string };
}

const tally = new Tally();
const takeFindTurn = createTurns(FINDS_AT_ONCE);
const takeSocketTurn = createTurns(SOCKETS_OPENING_MAX);
let sockets = 0;

addEventListener('message', ({ data }: MessageEvent<WorkerTask>) => {
  if ('challenge' in data) void solveWork(data.challenge).then(postMessage, reportError);
  else startBots(data);
});

function startBots(task: BotsTask): void {
  for (let bot = 0; bot < task.count; bot += 1) play(task, bot * START_EVERY_MS).catch(reportError);
  setInterval(() => postMessage(tally.report()), REPORT_EVERY_MS);
}

/** Plays as one bot, again and again, until the page ends the worker. */
async function play(task: BotsTask, delay_ms: number): Promise<void> {
  await pause(delay_ms);
  for (;;) {
    tally.waiting += 1;
    const seat = await takeFindTurn(() => find(task));
    tally.waiting -= 1;
    if (seat) await stay(seat, task);
    else await pause(PAUSE_AFTER_REFUSAL_MS * (1 + Math.random()));
  }
}

/** Returns a seat; undefined if the find was refused. */
async function find({ token, find: body }: BotsTask): Promise<Seat | undefined> {
  const started = performance.now();
  let answer = await send('POST', '/matchmaker/lobbies/find', token, body);
  if (answer.body.code === 'CAPTCHA_CAPTCHA_REQUIRED' && answer.body.metadata?.pow) {
    if (!isSecureContext) {
      tally.countRefusal(WITHOUT_CRYPTOGRAPHY, undefined);
      return undefined;
    }
    const challenge = await send('GET', '/matchmaker/captcha/challenge', token);
    if (challenge.status !== 200) return await waitAfterRefusal(challenge);
    const captcha = await solveWork(challenge.body);
    answer = await send('POST', '/matchmaker/lobbies/find', token, { ...body, captcha });
  }
  if (answer.status !== 200) return await waitAfterRefusal(answer);
  tally.countSeat(answer.body.lobby.lobby_id, performance.now() - started);
  return answer.body;
}

/** Counts a refusal, and waits as long as the service says. */
async function waitAfterRefusal({ status, body, retry_after_ms }: Answered): Promise<undefined> {
  tally.countRefusal(body.code ?? `HTTP_${status}`, body.ray_id);
  await pause(retry_after_ms);
}

/** Connects to a seat's game server, stays for a while, and leaves. */
async function stay(seat: Seat, { socket_labels }: BotsTask): Promise<void> {
  const url = toSocketUrl(seat, socket_labels);
  if (url === undefined) {
    tally.without_port += 1;
    await pause(stayTime());
    return;
  }
  if (sockets >= SOCKETS_MAX) {
    tally.only_seated += 1;
    await pause(RESERVED_FOR_MS);
    tally.only_seated -= 1;
    return;
  }
  sockets += 1;
  try {
    await connectAndLeave(seat.lobby.lobby_id, url);
  } finally {
    sockets -= 1;
  }
}

async function connectAndLeave(lobby_id: string, url: string): Promise<void> {
  const socket = await takeSocketTurn(() => connect(url)).catch(() => undefined);
  if (!socket) {
    // Browsers let no page that was loaded by https connect to most ports without TLS.
    if (location.protocol === 'https:' && url.startsWith('ws:')) tally.without_tls += 1;
    else tally.countUnreached(lobby_id);
    await pause(PAUSE_AFTER_REFUSAL_MS);
    return;
  }
  tally.connected += 1;
  tally.playing += 1;
  const closed = new Promise((resolve) => socket.addEventListener('close', resolve, { once: true }));
  await Promise.race([closed, pause(stayTime())]);
  tally.playing -= 1;
  socket.close();
}

function connect(url: string): Promise<WebSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
  const socket = new WebSocket(url);
  const giveUp = setTimeout(() => {
    reject(new Error('no answer in time'));
    socket.close();
  }, OPEN_WITHIN_MS);
  socket.addEventListener('open', () => {
    clearTimeout(giveUp);
    resolve(socket);
  });
  socket.addEventListener('error', () => {
    clearTimeout(giveUp);
    reject(new Error('refused'));
  });
  return promise;
}

type Answered = Awaited<ReturnType<typeof send>>;

/** Sends a request. One without an answer of the service has the status 0 and the code NO_ANSWER. */
async function send(method: string, path: string, token: string, body?: object) {
  try {
    const response = await fetch(path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      ...(body && { body: JSON.stringify(body) }),
    });
    const retry_after_ms = 1_000 * Number(response.headers.get('retry-after') ?? 0);
    return { status: response.status, body: await response.json(), retry_after_ms };
  } catch {
    return { status: 0, body: { code: 'NO_ANSWER' }, retry_after_ms: 0 };
  }
}

/** Returns a function that does the work it is given, at most `at_once_max` at a time; further work waits for its turn. */
function createTurns(at_once_max: number) {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (running >= at_once_max) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      // The next one takes over the turn.
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

function stayTime(): number {
  return STAY_MS.min + Math.random() * (STAY_MS.max - STAY_MS.min);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

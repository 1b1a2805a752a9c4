import type { Chance } from '../matchmaker/chance.ts';
import type { WatchHistory } from './watch-history.ts';

/** The processes that a watcher may connect to, and how long it watches. */
export interface WatcherOptions {
  /** The addresses of all processes, running or not. */
  urls: readonly string[];
  chance: Chance;
  signal: AbortSignal;
}

/** The watcher connects to another process after one of this many bodies. */
const SWITCHES_ONE_IN = 12;
const TRIES_AGAIN_AFTER_MS = 100;

/** Polls repeatedly, each time with the index of the last answer, until the signal is aborted. */
export async function watchByPolls(history: WatchHistory, { urls, chance, signal }: WatcherOptions): Promise<void> {
  let url = chance.pick(urls);
  while (!signal.aborted) {
    const is_answered = await poll(url).catch(() => false);
    if (is_answered && !chance.oneIn(SWITCHES_ONE_IN)) continue;
    if (!is_answered) await Bun.sleep(TRIES_AGAIN_AFTER_MS);
    url = chance.pick(urls);
    history.connect_count += 1;
  }

  async function poll(url: string): Promise<boolean> {
    const { path, token } = history.target;
    const index = history.index === undefined ? '' : `${path.includes('?') ? '&' : '?'}watch_index=${history.index}`;
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${url}${path}${index}`, { headers, signal });
    const text = await response.text();
    if (response.ok) history.add(text);
    else if (response.status !== 503) history.addFault(`refused by ${response.status}: ${text}`);
    return response.ok;
  }
}

const BODY = /^\{"type":"body","key":"(\w+)","body":/;

/** Watches by WebSocket. When it is closed, opens another with the index of the last body. */
export async function watchBySocket(history: WatchHistory, { urls, chance, signal }: WatcherOptions): Promise<void> {
  const { path, token } = history.target;
  while (!signal.aborted) {
    history.connect_count += 1;
    await watchAt(chance.pick(urls));
    if (!signal.aborted) await Bun.sleep(TRIES_AGAIN_AFTER_MS);
  }

  async function watchAt(url: string): Promise<void> {
    const protocols = ['muster.watch.v1', `bearer.${token}`];
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/watch`, protocols);
    const closed = Promise.withResolvers<void>();
    const leave = () => socket.close();
    let key: string | undefined;
    socket.onclose = () => closed.resolve();
    socket.onopen = () => {
      const { index: watch_index } = history;
      socket.send(JSON.stringify({ type: 'subscribe', id: 'it', path, ...(watch_index ? { watch_index } : {}) }));
    };
    socket.onmessage = ({ data }) => {
      // Ignores bodies in flight after the watcher has left.
      if (socket.readyState !== WebSocket.OPEN || signal.aborted) return;
      const text = String(data);
      const body = BODY.exec(text);
      if (body) {
        if (body[1] !== key) history.addFault(`a body under the key ${body[1]} instead of ${key}`);
        history.add(text.slice(body[0].length, -1));
        if (chance.oneIn(SWITCHES_ONE_IN)) leave();
        return;
      }
      const frame = JSON.parse(text);
      if (frame.type === 'subscribed') key = frame.key;
      if (frame.type === 'error') {
        if (!/STOPPING|UNAVAILABLE|NOT_READY/.test(frame.error.code)) history.addFault(`refused: ${text}`);
        leave();
      }
    };
    signal.addEventListener('abort', leave, { once: true });
    await closed.promise;
    signal.removeEventListener('abort', leave);
  }
}

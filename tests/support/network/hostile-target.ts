import type { Socket } from 'node:net';
import { answerText, answerWith, onRequest } from './listener.ts';

/** The behavior of a target, and the expected result: a status, or the kind of failure. */
export interface Behavior {
  serve: (socket: Socket) => void;
  outcome: number | 'timeout' | 'unreachable' | 'broken_answer';
}

const PIECE = 'y'.repeat(16_384);
const BOMB_BYTES = 64 * 1_048_576;

/** Writes pieces for as long as the peer reads. */
function writeForever(beginning: string, next: (count: number) => string) {
  return onRequest((socket) => {
    socket.write(beginning);
    let count = 0;
    const writeNext = () => {
      if (socket.destroyed) return;
      count += 1;
      socket.write(next(count), () => setImmediate(writeNext));
    };
    writeNext();
  });
}

/** Writes a text one character at a time, repeatedly. */
function drip(beginning: string, text: string) {
  return onRequest((socket) => {
    socket.write(beginning);
    let position = 0;
    const timer = setInterval(() => {
      if (socket.destroyed) return;
      socket.write(text[position % text.length] ?? '');
      position += 1;
    }, 20);
    socket.on('close', () => clearInterval(timer));
  });
}

/** Returns hostile targets. `elsewhere`: the address in their redirects. */
export function hostileTargets(elsewhere: string): Record<string, Behavior> {
  const redirects = [301, 302, 303, 307, 308].map((status): [string, Behavior] => [
    `a redirect to an internal address (${status})`,
    { serve: answerWith(answerText(status, { headers: { location: elsewhere } })), outcome: status },
  ]);
  return {
    silence: { serve: () => {}, outcome: 'timeout' },
    'headers that drip': { serve: drip('HTTP/1.1 200 OK\r\n', 'x-drop: y\r\n'), outcome: 'timeout' },
    'a status line that drips': { serve: drip('HTTP/1.1 2', '0'), outcome: 'broken_answer' },
    'headers without end': {
      serve: writeForever('HTTP/1.1 200 OK\r\n', (count) => `x-${count}: ${PIECE}\r\n`),
      outcome: 'broken_answer',
    },
    'one header without end': { serve: writeForever('HTTP/1.1 200 OK\r\nx: ', () => PIECE), outcome: 'broken_answer' },
    'interim answers without end': {
      serve: writeForever('', () => 'HTTP/1.1 100 Continue\r\n\r\n'),
      outcome: 'broken_answer',
    },
    'a body without end': { serve: writeForever('HTTP/1.1 200 OK\r\n\r\n', () => PIECE), outcome: 200 },
    'a body that drips': { serve: drip('HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n', 'y'), outcome: 200 },
    'a gzip bomb': {
      serve: onRequest((socket) => {
        const bomb = Bun.gzipSync(new Uint8Array(BOMB_BYTES));
        const headers = { 'content-encoding': 'gzip', 'content-length': String(bomb.length) };
        socket.write(answerText(200, { headers }));
        socket.end(bomb);
      }),
      outcome: 200,
    },
    ...Object.fromEntries(redirects),
    'an answer that comes too late': {
      serve: onRequest((socket) => {
        const timer = setTimeout(() => socket.end(answerText(200)), 20_000);
        socket.on('close', () => clearTimeout(timer));
      }),
      outcome: 'timeout',
    },
    'a status 500': { serve: answerWith(answerText(500)), outcome: 500 },
    'a reset': { serve: onRequest((socket) => void socket.resetAndDestroy()), outcome: 'unreachable' },
    'a reset before any byte': { serve: (socket) => void socket.resetAndDestroy(), outcome: 'unreachable' },
    'an end without an answer': { serve: onRequest((socket) => void socket.end()), outcome: 'unreachable' },
    'an end in the headers': { serve: answerWith('HTTP/1.1 200 OK\r\nx: y\r\n'), outcome: 'unreachable' },
    'another protocol': { serve: answerWith('SSH-2.0-OpenSSH_9.9\r\n'), outcome: 'broken_answer' },
    'a switch of protocols': {
      serve: answerWith('HTTP/1.1 101 Now\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'),
      outcome: 'broken_answer',
    },
    'two lengths': {
      serve: answerWith('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nyy'),
      outcome: 'broken_answer',
    },
    'an invalid status': {
      serve: answerWith('HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n'),
      outcome: 'broken_answer',
    },
  };
}

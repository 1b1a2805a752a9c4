import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type LogLevel, redact } from '../../src/platform/events.ts';

const EVENTS = join(import.meta.dir, '../../src/platform/events.ts');

/** Returns what a service of this log level writes to stderr when a script calls `log.emit`. */
async function write(
  level: LogLevel,
  script: string,
): Promise<{ lines: Record<string, unknown>[]; text: string; stdout: string }> {
  const source = `
    const { createLog } = await import(${JSON.stringify(EVENTS)});
    const log = createLog(${JSON.stringify(level)});
    ${script}`;
  const child = Bun.spawn([process.execPath, '-e', source], { stdout: 'pipe', stderr: 'pipe', env: {} });
  const [text, stdout] = await Promise.all([new Response(child.stderr).text(), new Response(child.stdout).text()]);
  const lines = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  return { lines, text, stdout };
}

describe('the log', () => {
  test('has one JSON object for each event, on stderr, with a time and a level', async () => {
    const { lines, stdout } = await write(
      'info',
      `log.emit({ event: 'server_started', server_id: 's', identity: { pid: 7 }, host: 'h', ports: [26000], isolation: 'full' });
       log.emit({ event: 'feed_reconnected' });`,
    );
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(lines).toEqual([
      {
        level: 'info',
        time,
        server_id: 's',
        identity: { pid: 7 },
        host: 'h',
        ports: [26000],
        isolation: 'full',
        event: 'server_started',
      },
      { level: 'warn', time, event: 'feed_reconnected' },
    ]);
    expect(stdout).toBe('');
  });

  const LEVELS: { level: LogLevel; events: string[] }[] = [
    { level: 'off', events: [] },
    { level: 'error', events: ['loop_failed'] },
    { level: 'warn', events: ['loop_failed', 'feed_reconnected'] },
    { level: 'info', events: ['loop_failed', 'feed_reconnected', 'upload_abandoned'] },
    { level: 'debug', events: ['loop_failed', 'feed_reconnected', 'upload_abandoned', 'database_started'] },
  ];
  for (const { level, events } of LEVELS) {
    test(`of the level ${level} has ${events.join(', ') || 'nothing'}`, async () => {
      const { lines } = await write(
        level,
        `log.emit({ event: 'loop_failed', loop: 'l', failures: 1, cause: new Error('it fails') });
         log.emit({ event: 'feed_reconnected' });
         log.emit({ event: 'upload_abandoned', upload_id: 'u' });
         log.emit({ event: 'database_started', process_id: 7 });`,
      );
      expect(lines.map(({ event }) => event)).toEqual(events);
    });
  }

  const BROKEN = [
    { stderr: 'a full disk', redirection: '2>/dev/full' },
    { stderr: 'a pipe that nothing reads any more', redirection: '2>&1 >&3 | true' },
  ];
  test.each(BROKEN)('does not fail the work that it describes if stderr is $stderr', async ({ redirection }) => {
    const source = `
      const { createLog } = await import(${JSON.stringify(EVENTS)});
      const log = createLog('info');
      process.on('unhandledRejection', (cause) => log.emit({ event: 'unexpected_failure', cause }));
      for (let time = 0; time < 3; time += 1) {
        log.emit({ event: 'feed_reconnected' });
        void Promise.reject(new Error('nothing waits for this'));
        await Bun.sleep(1);
      }
      console.log('still at work');`;
    const command = `exec 3>&1; "$0" -e "$1" ${redirection}`;
    const child = Bun.spawn(['/bin/sh', '-c', command, process.execPath, source], {
      stdout: 'pipe',
      stderr: 'pipe',
      env: {},
    });
    expect(await new Response(child.stdout).text()).toBe('still at work\n');
  });

  test('reports a failure with all its causes and stacks', async () => {
    const { lines } = await write(
      'error',
      `const root = new TypeError('the root');
       const cause = new Error('the query', { cause: new Error('the driver', { cause: root }) });
       log.emit({ event: 'request_failed', ray_id: 'r', method: 'GET', route: '/games/:game_id', cause });
       log.emit({ event: 'unexpected_failure', cause: 'a word' });
       root.cause = cause;
       log.emit({ event: 'unexpected_failure', cause });`,
    );
    const stack = expect.stringMatching(/\n\s+at /);
    expect(lines[0]).toMatchObject({
      event: 'request_failed',
      ray_id: 'r',
      method: 'GET',
      route: '/games/:game_id',
      cause: {
        name: 'Error',
        message: 'the query',
        stack,
        cause: {
          name: 'Error',
          message: 'the driver',
          stack,
          cause: { name: 'TypeError', message: 'the root', stack },
        },
      },
    });
    expect(lines[1]).toMatchObject({ event: 'unexpected_failure', cause: 'a word' });
    // Even an error that is its own cause.
    expect(lines[2]).toMatchObject({
      event: 'unexpected_failure',
      cause: { cause: { cause: { message: 'the root' } } },
    });
  });

  test('has only the text of a failed query, never its parameters', async () => {
    const { lines, text } = await write(
      'error',
      `const { DrizzleQueryError } = await import('drizzle-orm/errors');
       const driver = Object.assign(new Error('duplicate key'), { detail: 'Key (name)=(hidden-1) already exists.', parameters: ['hidden-2'] });
       const params = ['hidden-3', 'two\\nlines', 'a stack\\n    at hidden-4 (file.ts:1:2)\\n    at more', 'hidden-5'];
       const cause = new DrizzleQueryError('insert into keys (private) values ($1)', params, driver);
       log.emit({ event: 'request_failed', ray_id: 'r', method: 'GET', route: '/', cause });`,
    );
    expect(text).not.toContain('hidden');
    expect(lines[0]).toMatchObject({
      cause: {
        message: 'Failed query: insert into keys (private) values ($1)\nparams: [redacted]',
        stack: expect.stringMatching(
          /^(Error: )?Failed query: insert into keys \(private\) values \(\$1\)\nparams: \[redacted\]\n\s+at /,
        ),
        cause: { message: 'duplicate key' },
      },
    });
  });
});

test('log: a secret in any text of an event is redacted', async () => {
  const { lines } = await write(
    'info',
    `const text = 'at postgres://user:secret@host/db';
     log.emit({ event: 'database_awaited', reason: text, for_ms: 1 });
     log.emit({ event: 'captcha_not_checked', provider: 'p', namespace_id: 'n', reasons: [text] });`,
  );
  const text = 'at postgres://[redacted]@host/db';
  expect(lines).toMatchObject([{ reason: text }, { reasons: [text] }]);
});

describe('log: a secret in the text of a failure is redacted', () => {
  const JWS = 'eyJhbGciOiJFZERTQSJ9.aGlkZGVuLXBheWxvYWQ.aGlkZGVuLXNpZ25hdHVyZQ';
  const CASES = [
    { what: 'a token', text: `refused ${JWS} here`, redacted: 'refused [token] here' },
    { what: 'a token with its label', text: `Bearer cloud.${JWS}`, redacted: 'Bearer [token]' },
    { what: 'a token with a label of several words', text: `"dev_team-1.${JWS}"`, redacted: '"[token]"' },
    { what: 'two tokens', text: `a.${JWS} b.${JWS}`, redacted: '[token] [token]' },
    {
      what: 'the signature of an upload',
      text: 'PUT http://h/uploads/1?offset=0&signature=c2VjcmV0&expires=9',
      redacted: 'PUT http://h/uploads/1?offset=0&signature=[redacted]&expires=9',
    },
    {
      what: 'a password',
      text: 'to postgres://user:secret@host:5432/db',
      redacted: 'to postgres://[redacted]@host:5432/db',
    },
    {
      what: 'a password, in the long form',
      text: 'postgresql://user:secret@host/db',
      redacted: 'postgresql://[redacted]@host/db',
    },
    {
      what: 'a password of Redis',
      text: 'no answer of rediss://user:secret@host:6379/1',
      redacted: 'no answer of rediss://[redacted]@host:6379/1',
    },
    {
      what: 'a password with an @',
      text: 'postgres://user:sec@ret@host/db',
      redacted: 'postgres://[redacted]@host/db',
    },
    {
      what: 'a password with a quote',
      text: "postgres://user:sec'ret@host/db",
      redacted: 'postgres://[redacted]@host/db',
    },
    {
      what: 'a password as a parameter',
      text: 'postgres://host/db?user=u&password=secret&x=1',
      redacted: 'postgres://host/db?user=u&password=[redacted]&x=1',
    },
    {
      what: 'passwords of two addresses',
      text: 'postgres://a:b@c/d, postgres://e:f@g/h',
      redacted: 'postgres://[redacted]@c/d, postgres://[redacted]@g/h',
    },
    {
      what: 'the parameters of a query',
      text: 'Failed query: select $1\nparams: one,\ntwo',
      redacted: 'Failed query: select $1\nparams: [redacted]',
    },
  ];
  for (const { what, text, redacted } of CASES) {
    test(what, () => {
      expect(redact(text)).toBe(redacted);
    });
  }

  test('without delay, however long the text and whatever it consists of', () => {
    for (const piece of ['a', 'a.', 'eyJ', 'eyJ.', 'postgres://', 'postgres://a:b', '\nparams: ', '@']) {
      const length = 2_000_000;
      // With a backtracking pattern, one of these takes practically forever.
      expect(redact(piece.repeat(length / piece.length)).length).toBeLessThan(10_100);
    }
  });

  test('also if the text is cut in the middle of a token', () => {
    const text = `${'a '.repeat(4_950)}${JWS}${'hidden'.repeat(100)}`;
    expect(redact(text)).toEndWith(' a [token] [cut]');
  });

  test('and nothing else is', () => {
    for (const text of ['', 'postgres://host/db', 'mail ann@example.com', 'eyJ is how they begin', 'GET /a?b=c&d=e']) {
      expect(redact(text)).toBe(text);
    }
  });
});

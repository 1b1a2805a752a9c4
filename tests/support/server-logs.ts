import { afterAll, beforeAll } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReadOutput } from '../../src/features/servers/logs/logs.ts';
import { createOutputFiles } from '../../src/features/servers/runtimes/output/output-files.ts';
import { LOG_STREAMS } from '../../src/features/servers/tables.ts';
import { makeGame, type TestGame } from './game.ts';
import { serversOf, waitForEndEvent } from './servers.ts';
import { makeDataDirectory } from './service.ts';
import type { SharedService } from './suite.ts';

/** Reads a file as the output of a server, always as one process of the service does. */
export function readerOf(file: string): ReadOutput {
  const files = createOutputFiles();
  return (query) => files.read(file, query);
}

/** Returns the texts of lines of a log. */
export const textsOf = (lines: readonly { bytes: Uint8Array }[]): string[] =>
  lines.map(({ bytes }) => Buffer.from(bytes).toString());

/** Opens servers of a game without output, and a directory for the output that tests write. */
export function shareServerLogs(muster: SharedService) {
  let directory: string;
  let game: TestGame;
  beforeAll(async () => {
    directory = await makeDataDirectory();
    game = await makeGame(muster.api, muster.administrator_token);
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  /** Runs a server that ends without output. Returns its logs, and files with this content and their readers to collect. */
  async function makeLogs(content: string) {
    const server_id = await serversOf(muster, game).run('exit 0');
    await waitForEndEvent(muster, server_id);
    return LOG_STREAMS.map((stream) => {
      const file = join(directory, `${server_id}.${stream}`);
      writeFileSync(file, content);
      return { name: { server_id, stream }, file, read: readerOf(file) };
    });
  }

  return {
    fileOf: (name: string): string => join(directory, name),
    servers: () => serversOf(muster, game),
    makeLogs,
    /** Runs a server that ends without output. Returns its first log, with a file and a reader. */
    async makeLog(content = '') {
      const [log] = await makeLogs(content);
      if (!log) throw new Error('a server has logs');
      return log;
    },
  };
}

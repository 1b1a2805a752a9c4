import { closeSync, mkdtempSync, openSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environmentWith } from '../environment.ts';
import { ownCommand } from '../muster-command.ts';
import type { Scope, Session } from '../session.ts';

/** A deploy that goes on after its command has ended. */
export interface DetachedDeploy {
  pid: number;
  /** The file with what it writes. */
  log: string;
}

/** Starts a process, in a session of its own, that checks a version and puts a namespace on it. */
export async function startBackgroundDeploy(
  { api }: Session,
  { game, namespace }: Scope,
  version_id: string,
): Promise<DetachedDeploy> {
  const log = join(mkdtempSync(join(tmpdir(), 'muster-deploy-')), 'deploy.log');
  const output = openSync(log, 'wx', 0o600);
  const where = ['--url', api.url, '--game', game.game_id, '--version', version_id];
  // Other users may see arguments, so the token comes by standard input.
  const child = Bun.spawn([...ownCommand(), 'deploy', namespace.namespace_id, ...where, '--token', '-'], {
    env: environmentWith(),
    stdin: 'pipe',
    stdout: output,
    stderr: output,
    detached: true,
  });
  closeSync(output);
  child.stdin.write(api.token ?? '');
  await child.stdin.end();
  child.unref();
  return { pid: child.pid, log };
}

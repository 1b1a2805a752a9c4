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
  { api, token_source }: Session,
  { game, namespace }: Scope,
  version_id: string,
): Promise<DetachedDeploy> {
  const log = join(mkdtempSync(join(tmpdir(), 'muster-deploy-')), 'deploy.log');
  const output = openSync(log, 'wx', 0o600);
  const where = ['--url', api.url, '--game', game.game_id, '--version', version_id];
  // Other users may see arguments, so the token of an option comes by standard input. Others are found in the same way again.
  const with_token = token_source === 'option' ? ['--token', '-'] : [];
  const variables: Record<string, string> =
    token_source === 'environment' && api.token !== undefined ? { MUSTER_TOKEN: api.token } : {};
  const child = Bun.spawn([...ownCommand(), 'deploy', namespace.namespace_id, ...where, ...with_token], {
    env: environmentWith(variables),
    stdin: 'pipe',
    stdout: output,
    stderr: output,
    detached: true,
  });
  closeSync(output);
  if (token_source === 'option') child.stdin.write(api.token ?? '');
  await child.stdin.end();
  child.unref();
  return { pid: child.pid, log };
}

import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { environment } from '../environment.ts';
import { EXIT, Failure } from '../failure.ts';
import { ownCommand } from '../own-command.ts';

/** The service that `muster dev` uses. */
export interface DevService {
  url: string;
  /** Rejects when the service ends by itself, and resolves after `stop`; never settles for a service that ran before. */
  ended: Promise<void>;
  /** Ends the service and its game servers. Does nothing to a service that ran before. */
  stop(): Promise<void>;
}

/** Enough for a first start with the embedded PostgreSQL on a slow disk. */
const READY_WITHIN_MS = 120_000;
const POLL_EVERY_MS = 50;
const LOG_LINES = 20;
/** Settings of a service that only its developer uses. Variables of the environment win over them. */
const DEFAULTS = {
  // Bots and reloads send many requests from one address.
  MUSTER_LIMITS_SCALE: '100',
  // The game's own server may verify players.
  MUSTER_OUTBOUND_ALLOW: '127.0.0.0/8, ::1',
};

/**
 * Returns the service that runs on this machine, or starts one with the data directory of this folder, in which its log is
 * `service.log`. The signal ends a start.
 */
export async function openDevService(signal: AbortSignal): Promise<DevService> {
  const url = environment.local_url;
  if (await isReady(url)) return { url, ended: new Promise(() => {}), stop: async () => {} };
  const log_file = join(environment.data_directory, 'service.log');
  mkdirSync(environment.data_directory, { recursive: true, mode: 0o711 });
  const log = openSync(log_file, 'w', 0o600);
  const child = Bun.spawn([...ownCommand(), 'serve'], {
    env: environment.forService({ ...DEFAULTS, ...previewSettings() }),
    stdin: 'ignore',
    stdout: log,
    stderr: log,
  });
  closeSync(log);
  const end = async () => {
    child.kill('SIGINT');
    await child.exited;
  };
  const lastLines = () => readFileSync(log_file, 'utf8').trimEnd().split('\n').slice(-LOG_LINES).join('\n');
  for (const started = performance.now(); !(await isReady(url)); await Bun.sleep(POLL_EVERY_MS)) {
    if (signal.aborted) {
      await end();
      throw new Failure('Stopped.', EXIT.interrupted);
    }
    if (child.exitCode !== null) throw new Failure(`The service did not start:\n${lastLines()}`);
    if (performance.now() - started > READY_WITHIN_MS) {
      await end();
      throw new Failure(`The service was not ready within ${READY_WITHIN_MS / 1_000} s:\n${lastLines()}`);
    }
  }
  let is_stopping = false;
  const ended = child.exited.then(() => {
    if (!is_stopping) throw new Failure(`The service has ended:\n${lastLines()}`);
  });
  // A caller that does not await it must not crash by it.
  ended.catch(() => {});
  return {
    url,
    ended,
    async stop() {
      is_stopping = true;
      await end();
    },
  };
}

function previewSettings(): Record<string, string> {
  return environment.preview ? { MUSTER_SERVER_PORTS: environment.preview_server_ports } : {};
}

async function isReady(url: string): Promise<boolean> {
  const signal = AbortSignal.timeout(2_000);
  return await fetch(`${url}/health/ready`, { signal }).then(
    (answer) => answer.ok,
    () => false,
  );
}

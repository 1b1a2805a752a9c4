import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { environment } from '../environment.ts';
import { DEV_SERVICE_COMMAND, ownCommand } from '../muster-command.ts';

/** The service that `muster dev` uses. */
export interface DevService {
  url: string;
  /** Whether it ran before, so that others may use it too. */
  ran_before: boolean;
  /** Rejects when the service ends by itself, and resolves after `stop`; never settles for a service that ran before. */
  ended: Promise<void>;
  /** Ends the service and its game servers. Does nothing to a service that ran before. */
  stop(): Promise<void>;
}

/** Enough for a first start with the embedded PostgreSQL on a slow disk. */
const READY_WITHIN_MS = 120_000;
const POLL_EVERY_MS = 50;
const LOG_LINES = 20;
/** A longer log begins anew with the next start. */
const LOG_BYTES_MAX = 8 * 1024 ** 2;
/** Settings of a service that only its developer uses. Variables of the environment win over them. */
const DEFAULTS = {
  // Bots and reloads send many requests from one address.
  MUSTER_LIMITS_SCALE: '100',
  // The game's own server may verify players.
  MUSTER_OUTBOUND_ALLOW: '127.0.0.0/8, ::1',
};

/**
 * Returns the service that runs on this machine, or starts one with the data directory of this folder, in which its log is
 * `service.log`. The signal ends a start. The service is in a session of its own, so no signal of the terminal reaches it; it
 * ends with its game servers once this process has ended in any way.
 */
export async function openDevService(signal: AbortSignal): Promise<DevService> {
  const url = environment.local_url;
  if (await isReady(url)) return { url, ran_before: true, ended: new Promise(() => {}), stop: async () => {} };
  const log_file = join(environment.data_directory, 'service.log');
  mkdirSync(environment.data_directory, { recursive: true, mode: 0o711 });
  const log = openLog(log_file);
  const child = Bun.spawn([...ownCommand(), DEV_SERVICE_COMMAND], {
    env: environment.forService({ ...DEFAULTS, ...previewSettings() }),
    stdin: 'pipe',
    stdout: log.fd,
    stderr: log.fd,
    detached: true,
  });
  closeSync(log.fd);
  const end = async () => {
    const interrupt = () => child.kill('SIGINT');
    interrupt();
    // A second press of ctrl-C makes the service exit at once.
    process.on('SIGINT', interrupt);
    await child.exited;
    process.off('SIGINT', interrupt);
  };
  const lastLines = () =>
    readFileSync(log_file).subarray(log.begins_at).toString().trimEnd().split('\n').slice(-LOG_LINES).join('\n');
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
    ran_before: false,
    ended,
    async stop() {
      is_stopping = true;
      await end();
    },
  };
}

/** Opens a log to add to it. Another service may write there, until it finds that this one has its data. */
function openLog(file: string): { fd: number; begins_at: number } {
  const is_long = (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX;
  const fd = openSync(file, is_long ? 'w' : 'a', 0o600);
  return { fd, begins_at: fstatSync(fd).size };
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

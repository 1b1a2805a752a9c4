import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import type { Subprocess } from 'bun';
import { findProcessesByEnvironment } from '../../src/platform/system/processes.ts';

/** Returns the pids of all processes with a directory as their working directory or in their environment. */
export function findProcessesOf(directory: string): number[] {
  return listProcesses().filter((pid) => pid !== process.pid && belongsTo(pid, directory) && !isDead(pid));
}

/**
 * Returns the pids of a server's processes, which have its id in their environment. The service's command that removes the
 * files of an ended server has it only in its arguments.
 */
export function findServerProcesses(server_id: string): number[] {
  return findProcessesByEnvironment(`MUSTER_SERVER_ID=${server_id}`);
}

/** Returns the process id of the embedded PostgreSQL's postmaster, from postmaster.pid. */
export function postgresOf(data_directory: string): number {
  return Number(readFileSync(`${data_directory}/postgres/cluster/postmaster.pid`, 'utf8').split('\n')[0]);
}

/** Returns the first process of a pod's container that runs a program, by the id of the pod. */
export function findContainerProcess(pod_uid: string, program: string): number {
  const isFirst = (pid: number) => /^NSpid:.*\t1$/m.test(readFile(pid, 'status'));
  const isOfProgram = (pid: number) => basename(readFile(pid, 'cmdline').split('\0')[0] ?? '') === program;
  const found = listProcesses().filter(
    (pid) => readFile(pid, 'cgroup').includes(pod_uid) && isFirst(pid) && isOfProgram(pid),
  );
  const [pid] = found;
  if (pid === undefined || found.length > 1)
    throw new Error(`pod ${pod_uid} has ${found.length} processes of ${program}`);
  return pid;
}

function listProcesses(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function belongsTo(pid: number, directory: string): boolean {
  return (
    read(() => readlinkSync(`/proc/${pid}/cwd`)).startsWith(`${directory}/`) ||
    readFile(pid, 'environ').includes(directory) ||
    readFile(pid, 'cmdline').includes(directory)
  );
}

/** The state of a process that has ended and was not yet collected by its parent. */
function isDead(pid: number): boolean {
  const stat = readFile(pid, 'stat');
  return stat.slice(stat.lastIndexOf(')')).startsWith(') Z');
}

const readFile = (pid: number, name: string): string => read(() => readFileSync(`/proc/${pid}/${name}`, 'utf8'));

/** A process may end while it is read. */
function read(look: () => string): string {
  try {
    return look();
  } catch {
    return '';
  }
}

/** Waits until a process has ended. Returns its exit code and all that it wrote. */
export async function readToEnd(child: Subprocess<'ignore' | 'pipe' | Blob, 'pipe', 'pipe'>) {
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { exit_code: await child.exited, stdout, stderr };
}

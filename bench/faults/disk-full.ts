import { mkdtemp, open, rmdir, statfs, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Api } from '../../tests/support/api.ts';
import { makeGame, type TestGame } from '../../tests/support/game.ts';
import { atMost, calm, type Fault, type FaultContext, holds, secondsSince } from './fault.ts';

const DISK_MIB = 2_048;
const MIB = 1024 ** 2;
const UPLOAD_BYTES = 32 * MIB;
/** More than the service reserves for its database, so that some uploads fit. */
const FREE_BEFORE_BYTES = 800 * MIB;
const UPLOADS_MAX = 40;
const BACK_S_MAX = 30;
const BACK_S_WAITED = 60;

export const diskFull: Fault = {
  name: 'disk',
  title: 'uploads fill the disk of the data directory; then another program takes the rest',
  obstacle: () => (process.getuid?.() === 0 ? undefined : 'not root: no small disk can be mounted'),
  async run(context) {
    const disk = await mountDisk(context);
    const subject = await context.start({ parent: disk });
    const { api, administrator_token, url } = subject.program;
    const game = await makeGame(api, administrator_token);
    await context.phase(subject, 'calm', calm);
    const readyStatus = async () =>
      (await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(15_000) })).status;
    const ballast = join(disk, 'ballast');
    await fill(ballast, (await freeBytes(disk)) - FREE_BEFORE_BYTES);

    const upload = async () => {
      for (let number = 0; number < UPLOADS_MAX; number += 1) {
        const outcome = await sendBuild(api, game);
        if (outcome !== '200') return outcome;
      }
      return '200';
    };
    const uploads = await context.phase(subject, 'while uploads fill it', upload);
    const status_meanwhile = await readyStatus();
    context.expect(holds('uploads: ready', status_meanwhile === 200, { figure: String(status_meanwhile) }));
    const is_refused_with_reason = /^50[37] /.test(uploads.result);
    context.expect(holds('uploads: refused with 503 or 507', is_refused_with_reason, { figure: uploads.result }));
    context.note('uploads: left free', `${((await freeBytes(disk)) / MIB).toFixed(0)} MiB`);

    const rest = join(disk, 'rest');
    await fill(rest, Number.POSITIVE_INFINITY);
    await context.phase(subject, 'when nothing is left', calm, { has_no_database: true });
    const status = await readyStatus().catch(() => 0);
    context.expect(holds('full: not ready', status === 503, { figure: String(status) }));

    await unlink(rest);
    await unlink(ballast);
    const started = performance.now();
    const back = async () => {
      while (secondsSince(started) < BACK_S_WAITED) {
        const body = { display_name: 'Written' };
        const signal = AbortSignal.timeout(10_000);
        const asked = api.call('POST', '/group/groups', { token: administrator_token, body, signal });
        if (await asked.then(({ status }) => status === 200).catch(() => false)) break;
        await Bun.sleep(100);
      }
      const back_s = secondsSince(started);
      // Long enough to measure other requests, also if the first write succeeds.
      await Bun.sleep(1_000);
      return back_s;
    };
    const options = { deadline_s: BACK_S_WAITED + 15, has_no_database: true };
    const { result: back_s } = await context.phase(subject, 'until writes succeed again', back, options);
    context.expect(atMost('writes succeed again, after there is room', BACK_S_MAX, back_s, 's'));
    await context.phase(subject, 'afterwards', calm);
  },
};

/** Uploads a build. Returns the status, and the code of a refusal. */
async function sendBuild(api: Api, { game_id, namespace_id, cloud_token: token }: TestGame): Promise<string> {
  const body = { name: 'Large', kind: 'archive', command: ['./server'] };
  const image_file = { path: 'server.tar', content_length: UPLOAD_BYTES };
  const path = `/games/${game_id}/environments/${namespace_id}/builds/prepare`;
  const prepared = await api.post(path, token, { ...body, image_file });
  if (prepared.status !== 200) return `${prepared.status} ${prepared.body.code}`;
  const content = new Uint8Array(UPLOAD_BYTES);
  const sent = await fetch(prepared.body.image_presigned_request.url, { method: 'PUT', body: content });
  const { code = '' } = await sent.json().catch(() => ({}));
  return sent.ok ? String(sent.status) : `${sent.status} ${code}`;
}

/** Mounts a disk in memory for the fault. */
async function mountDisk(context: FaultContext): Promise<string> {
  const disk = await mkdtemp(join(tmpdir(), 'muster-disk-'));
  context.opened.defer(() => rmdir(disk));
  run('mount', '-t', 'tmpfs', '-o', `size=${DISK_MIB}m,mode=0711`, 'tmpfs', disk);
  context.opened.defer(() => run('umount', disk));
  return disk;
}

function run(...command: string[]): void {
  const { success, stderr } = Bun.spawnSync(command);
  if (!success) throw new Error(`${command.join(' ')}: ${stderr}`);
}

async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** Writes a file of this size, or as much of it as fits. */
async function fill(path: string, bytes: number): Promise<void> {
  await using file = await open(path, 'w');
  const chunk = new Uint8Array(MIB);
  const wanted = Math.min(bytes, DISK_MIB * MIB);
  for (let written = 0; written < wanted; ) {
    const { bytesWritten } = await file.write(chunk).catch(() => ({ bytesWritten: 0 }));
    if (bytesWritten === 0) return;
    written += bytesWritten;
  }
}

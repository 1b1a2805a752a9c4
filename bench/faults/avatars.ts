import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Api } from '../../tests/support/api.ts';
import { atMost, calm, type Fault, runConcurrently, secondsSince } from './fault.ts';

const CONCURRENCY = 8;
const SECONDS = 5;
const AVATARS_OF_A_GUEST = 4;
const PICTURE_BYTES = 1_900_000;
const MB = 1_000_000;
/** An address may prepare 60 pictures in 15 minutes. */
const STORED_MB_MAX = 120;
const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

export const avatars: Fault = {
  name: 'avatars',
  title: `for ${SECONDS} s an address makes guests with a game's public token, and each uploads avatars of 1.9 MB`,
  async run(context) {
    // With the default rate limits, which are part of what is measured.
    const subject = await context.start({ settings: { MUSTER_LIMITS_SCALE: '1' } });
    const { api } = subject.program;
    const objects = join(subject.home.data_directory, 'objects');
    await context.phase(subject, 'calm', calm);
    const before = bytesIn(objects);
    const picture = new Uint8Array(PICTURE_BYTES).fill(7);
    picture.set(PNG);
    const started = performance.now();
    const refusals: Record<string, number> = {};
    let stored = 0;
    const attack = async () => {
      const token = subject.bystander.public_token;
      while (secondsSince(started) < SECONDS) {
        const refusal = await uploadAvatars(api, token, picture, () => {
          stored += 1;
        });
        if (refusal === undefined) continue;
        refusals[refusal] = (refusals[refusal] ?? 0) + 1;
        await Bun.sleep(50);
      }
    };
    const all = () =>
      runConcurrently(
        Array.from({ length: CONCURRENCY }, () => attack),
        CONCURRENCY,
      );
    await context.phase(subject, 'while they upload', all);
    const written = (bytesIn(objects) - before) / MB;
    context.expect(atMost('written to the disk', STORED_MB_MAX, written, 'MB'));
    context.note('avatars that were taken, refusals', `${stored}, ${JSON.stringify(refusals)}`);
  },
};

/** Creates a guest who changes its picture several times. Returns the status and the code of a refusal. */
async function uploadAvatars(
  api: Api,
  public_token: string,
  picture: Uint8Array<ArrayBuffer>,
  onStored: () => void,
): Promise<string | undefined> {
  const base = '/identity/identities/avatar-upload';
  const made = await api.post('/identity/identities', public_token);
  if (made.status !== 200) return `guest: ${made.status} ${made.body.code}`;
  const token = made.body.identity_token;
  for (let number = 0; number < AVATARS_OF_A_GUEST; number += 1) {
    const body = { path: 'me.png', content_length: picture.length };
    const prepared = await api.post(`${base}/prepare`, token, body);
    if (prepared.status !== 200) return `prepare: ${prepared.status} ${prepared.body.code}`;
    const { upload_id, presigned_request } = prepared.body;
    const sent = await fetch(presigned_request.url, { method: 'PUT', body: picture });
    if (!sent.ok) return `PUT: ${sent.status}`;
    const completed = await api.post(`${base}/${upload_id}/complete`, token);
    if (completed.status !== 200) return `complete: ${completed.status} ${completed.body.code}`;
    onStored();
  }
  return undefined;
}

function bytesIn(directory: string): number {
  const names = readdirSync(directory, { recursive: true, withFileTypes: true });
  let bytes = 0;
  for (const entry of names) {
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0;
  }
  return bytes;
}

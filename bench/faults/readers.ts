import { makeGame, type TestGame } from '../../tests/support/game.ts';
import { openSmallS3 } from '../../tests/support/objects/small-s3.ts';
import { showSite, uploadSite } from '../../tests/support/site.ts';
import { waitFor } from '../../tests/support/wait.ts';
import { residentBytes } from '../meter.ts';
import { openAttackers, requestFrom, requestOf } from './connections.ts';
import { atMost, calm, exactly, type Fault, holds, secondsSince } from './fault.ts';

const TRANSFERS_PER_ADDRESS_MAX = 256;
const READERS = 300;
/** More than the socket buffers hold. */
const FILE_BYTES = 24 * 1024 ** 2;
const MEMORY_MIB_MAX = 1_024;
/** All begin at once, and the buffers of the kernel fill, which is some 8 ms of work for each. */
const BEGIN_LIVE_MS_MAX = 500;
const BEGIN_FIND_MS_MAX = 1_000;
const WAIT_S_MAX = 20;
const SETTLE_MS_MAX = 30_000;
const MIB = 1024 ** 2;

export const readers: Fault = {
  name: 'readers',
  title: `${READERS} clients of two addresses request a file of ${FILE_BYTES / MIB} MiB in object storage and do not read it`,
  async run(context) {
    const s3 = context.opened.use(await openSmallS3());
    // With the default rate limits, which are part of what is measured.
    const subject = await context.start({ settings: { ...s3.settings, MUSTER_LIMITS_SCALE: '1' } });
    const { api, administrator_token, pid } = subject.program;
    const { port } = subject;
    const game = await makeGame(api, administrator_token);
    const { name_id } = (await api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token })).game;
    const chunk = crypto.getRandomValues(new Uint8Array(65_536));
    const files = { 'large.bin': Buffer.alloc(FILE_BYTES, chunk), 'small.txt': 'small' };
    await showSite(api, game, { site_id: await uploadSite(api, game, files) });
    const host = `${name_id}.sites.localhost`;
    await context.phase(subject, 'calm', calm);
    const memory_before = residentBytes(pid);
    const request = requestOf('GET', '/large.bin', { host });
    const options = { port, request, reads: false };
    const begin = async () => {
      const most = await openAttackers({ ...options, count: TRANSFERS_PER_ADDRESS_MAX, address: '127.0.0.9' });
      context.opened.use(most);
      const rest = await openAttackers({
        ...options,
        count: READERS - TRANSFERS_PER_ADDRESS_MAX,
        address: '127.0.0.10',
      });
      context.opened.use(rest);
      const countAnswered = () => [...most.all, ...rest.all].filter(({ status }) => status === '200').length;
      await waitFor(() => countAnswered() === READERS, 'the answers', SETTLE_MS_MAX).catch(() => {});
      const answered_count = countAnswered();
      // The buffers of the kernel fill meanwhile.
      await calm();
      return answered_count;
    };
    const limits = { live_ms_max: BEGIN_LIVE_MS_MAX, find_ms_max: BEGIN_FIND_MS_MAX };
    const { result: answered } = await context.phase(subject, 'while they begin', begin, limits);
    const attack = async () => {
      await calm();
      const { under_way } = s3;
      const memory = residentBytes(pid) - memory_before;
      const read = await timed(async () => {
        const { outcome } = await requestFrom('127.0.2.1', port, requestOf('GET', '/small.txt', { host }));
        if (outcome !== '200') throw new Error(outcome);
      });
      const upload = await timed(async () => void (await uploadSite(api, game as TestGame, { 'new.txt': 'new' })));
      return { under_way, memory, read, upload };
    };
    const { result } = await context.phase(subject, 'while they do not read', attack, { deadline_s: 90 });
    context.expect(exactly('readers answered with 200', READERS, answered));
    context.expect(exactly('reads of the object storage that they hold', READERS, result.under_way));
    context.expect(holds('another client reads a file', result.read.is_done, { figure: result.read.figure }));
    context.expect(holds('a developer uploads a site', result.upload.is_done, { figure: result.upload.figure }));
    context.expect(atMost('memory of the service, more than before', MEMORY_MIB_MAX, result.memory / MIB, 'MiB'));
  },
};

async function timed(work: () => Promise<void>): Promise<{ is_done: boolean; figure: string }> {
  const started = performance.now();
  const late = Bun.sleep(WAIT_S_MAX * 1_000).then(() => `not done after ${WAIT_S_MAX} s`);
  const failure = await Promise.race([
    work().then(
      () => undefined,
      (error: Error) => error.message,
    ),
    late,
  ]);
  return { is_done: failure === undefined, figure: failure ?? `after ${secondsSince(started).toFixed(2)} s` };
}

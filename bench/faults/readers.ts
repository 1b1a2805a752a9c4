import { makeGame, type TestGame } from '../../tests/support/game.ts';
import { openTestBucket, TEST_S3 } from '../../tests/support/s3.ts';
import { showSite, uploadSite } from '../../tests/support/site.ts';
import { waitFor } from '../../tests/support/wait.ts';
import { residentBytes } from '../meter.ts';
import { holdConnections, requestFrom, requestOf } from './connections.ts';
import { calm, type Fault, holds, secondsSince } from './fault.ts';

const ATTACKER = '127.0.0.9';
const READERS = 300;
const FILE_BYTES = 16 * 1024 ** 2;
const WAIT_S_MAX = 20;
const SETTLE_MS_MAX = 30_000;
const MIB = 1024 ** 2;

export const readers: Fault = {
  name: 'readers',
  title: `${READERS} clients request a file of ${FILE_BYTES / MIB} MiB in object storage and do not read it`,
  obstacle: () =>
    TEST_S3 === undefined ? 'no S3 server: run .ci/s3-server and set MUSTER_TEST_S3 to what it prints' : undefined,
  async run(trial) {
    const { settings } = await openTestBucket();
    const subject = await trial.start({ settings });
    const { api, administrator_token, pid } = subject.program;
    const { port } = subject;
    const game = await makeGame(api, administrator_token);
    const { name_id } = (await api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token })).game;
    const large = crypto.getRandomValues(new Uint8Array(65_536));
    const files = { 'large.bin': Buffer.alloc(FILE_BYTES, large), 'small.txt': 'small' };
    await showSite(api, game, { site_id: await uploadSite(api, game, files) });
    const host = `${name_id}.sites.localhost`;
    await trial.phase(subject, 'calm', calm);
    const memory_before = residentBytes(pid);
    const attack = async () => {
      const request = requestOf('GET', '/large.bin', { host });
      using slow = await holdConnections({ port, count: READERS, address: ATTACKER, request, reads: false });
      const countAnswered = () => slow.all.filter(({ status }) => status !== undefined).length;
      await waitFor(() => countAnswered() === READERS, 'the answers', SETTLE_MS_MAX).catch(() => {});
      const answered = countAnswered();
      const memory = residentBytes(pid) - memory_before;
      const read = await timed(async () => {
        const { outcome } = await requestFrom('127.0.2.1', port, requestOf('GET', '/small.txt', { host }));
        if (outcome !== '200') throw new Error(outcome);
      });
      const upload = await timed(async () => void (await uploadSite(api, game as TestGame, { 'new.txt': 'new' })));
      return { answered, memory, read, upload, closed: slow.closedCount() };
    };
    const { result } = await trial.phase(subject, 'while they do not read', attack, 90);
    trial.expect(holds('another client reads a file', result.read.is_done, { figure: result.read.figure }));
    trial.expect(holds('a developer uploads a site', result.upload.is_done, { figure: result.upload.figure }));
    trial.note('of the readers were answered, closed', `${result.answered}, ${result.closed}`);
    trial.note('memory of the service, more than before', `${(result.memory / MIB).toFixed(0)} MiB`);
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

import { makeGame } from '../../tests/support/game.ts';
import { showSite, uploadSite } from '../../tests/support/site.ts';
import { residentBytes } from '../meter.ts';
import { openAttackers, requestOf } from './connections.ts';
import { atMost, calm, type Fault, holds } from './fault.ts';

const ATTACKER = '127.0.0.9';
const READERS = 120;
const MIB = 1024 ** 2;
const SECONDS = 20;
const MEMORY_MIB_MAX = 512;
const RANDOM_BYTES = 65_536 * 3;

export const compression: Fault = {
  name: 'compression',
  title: `${READERS} clients request a text of 80 MiB in brotli and do not read it`,
  async run(context) {
    const subject = await context.start();
    const { api, administrator_token, pid } = subject.program;
    const game = await makeGame(api, administrator_token);
    const { name_id } = (await api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token })).game;
    const file = Buffer.alloc((context.is_quick ? 20 : 80) * MIB, '\n');
    // Base64 of random bytes: text that compresses only a little.
    for (let offset = 0; offset < file.length; offset += (RANDOM_BYTES * 4) / 3) {
      const bytes = new Uint8Array(RANDOM_BYTES);
      for (let start = 0; start < RANDOM_BYTES; start += 65_536)
        crypto.getRandomValues(bytes.subarray(start, start + 65_536));
      file.write(Buffer.from(bytes).toString('base64'), offset);
    }
    await showSite(api, game, { site_id: await uploadSite(api, game, { 'large.txt': file }) });
    await context.phase(subject, 'calm', calm);
    const memory_before = residentBytes(pid);
    const attack = async () => {
      const host = `${name_id}.sites.localhost`;
      const request = requestOf('GET', '/large.txt', { host, 'accept-encoding': 'br' });
      const options = { port: subject.port, count: READERS, address: ATTACKER, request, reads: false };
      using slow = await openAttackers(options);
      let peak = 0;
      for (let second = 0; second < SECONDS; second += 0.25) {
        peak = Math.max(peak, residentBytes(pid) - memory_before);
        await Bun.sleep(250);
      }
      return { peak, answered: slow.all.filter(({ status }) => status === '200').length };
    };
    const { result } = await context.phase(subject, 'while they do not read', attack);
    context.expect(atMost('memory of the service, more than before', MEMORY_MIB_MAX, result.peak / MIB, 'MiB'));
    const figure = `${result.answered} of ${READERS}`;
    context.expect(holds('readers are answered with 200', result.answered > 0, { figure }));
  },
};

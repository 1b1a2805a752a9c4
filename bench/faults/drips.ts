import { openFiles } from '../meter.ts';
import { openAttackers, requestOf } from './connections.ts';
import { calm, exactly, type Fault, secondsSince } from './fault.ts';

const ATTACKER = '127.0.0.9';
const DRIP_EVERY_MS = 1_000;
const BODY_BYTES = 1_000;
const CHECK_EVERY_MS = 250;

export const drips: Fault = {
  name: 'drips',
  title: 'connections of one address send bodies a byte a second, half of them to a route that refuses them at once',
  async run(context) {
    const [count, seconds] = context.is_quick ? [100, 65] : [300, 85];
    const subject = await context.start();
    const { port, program, bystander } = subject;
    const host = `127.0.0.1:${port}`;
    await context.phase(subject, 'calm', calm);
    const files_before = openFiles(program.pid);
    const length = { 'content-type': 'application/json', 'content-length': String(BODY_BYTES) };
    const token = { authorization: `Bearer ${bystander.public_token}` };
    const path = '/matchmaker/lobbies/find';
    const options = { port, count: count / 2, address: ATTACKER, reads: true };
    const drip = async () => {
      using refused = await openAttackers({ ...options, request: requestOf('POST', path, { host, ...length }) });
      const request = requestOf('POST', path, { host, ...length, ...token });
      using taken = await openAttackers({ ...options, request });
      const all = [...refused.all, ...taken.all];
      const started = performance.now();
      let half_s: number | undefined;
      let next_drip_s = 0;
      while (secondsSince(started) < seconds) {
        if (secondsSince(started) >= next_drip_s) {
          for (const connection of all) if (!connection.is_closed) connection.write(' ');
          next_drip_s += DRIP_EVERY_MS / 1_000;
        }
        const closed = refused.closedCount() + taken.closedCount();
        if (closed >= count / 2) half_s ??= secondsSince(started);
        if (closed === count) break;
        await Bun.sleep(CHECK_EVERY_MS);
      }
      const statuses = Map.groupBy(all, ({ status }) => status ?? 'no answer');
      return {
        refused: refused.closedCount(),
        taken: taken.closedCount(),
        half_s,
        all_s: secondsSince(started),
        answers: [...statuses].map(([status, { length: times }]) => `${times} × ${status}`).join(', '),
      };
    };
    const { result } = await context.phase(subject, 'while they drip', drip, { deadline_s: seconds + 30 });
    context.expect(exactly('closed, of those refused at once', count / 2, result.refused));
    context.expect(exactly('closed, of those whose body is waited for', count / 2, result.taken));
    context.note('half of them closed after', result.half_s === undefined ? 'never' : `${result.half_s.toFixed(1)} s`);
    context.note('connections', String(count));
    context.note('the connections were watched for', `${result.all_s.toFixed(0)} s`);
    context.note('they were answered', result.answers);
    await Bun.sleep(1_000);
    context.note(
      'descriptors of the service afterwards, more than before',
      String(openFiles(program.pid) - files_before),
    );
  },
};

import { holdConnections } from '../../tests/support/network/held-connections.ts';
import { commandOf } from '../../tests/support/program.ts';
import { openAttackers, requestOf } from './connections.ts';
import { CALM_S, calm, exactly, type Fault } from './fault.ts';

const ATTACKER = '127.0.0.9';
const FILES_MAX = 256;
const CONNECTIONS = 300;
const SECONDS = 15;
/** Each request opens a connection, while an attacker has most of those that the service may have. */
const LIVE_MS_MAX = 500;

export const descriptors: Fault = {
  name: 'descriptors',
  title: `the service may open ${FILES_MAX} files, and one address opens ${CONNECTIONS} connections: half are silent, half send a byte a second; then it reopens as many whenever they are closed`,
  async run(context) {
    const command = ['/bin/sh', '-c', `ulimit -n ${FILES_MAX}; exec "$0" "$@"`, ...commandOf('executable')];
    const subject = await context.start({ command, is_fresh: true });
    const { port, program } = subject;
    await context.phase(subject, 'new clients, calm', calm);
    const attack = async () => {
      const request = requestOf('POST', '/matchmaker/lobbies/find', {
        host: `127.0.0.1:${port}`,
        'content-type': 'application/json',
        'content-length': '1000',
        authorization: `Bearer ${subject.bystander.public_token}`,
      });
      const options = { port, count: CONNECTIONS / 2, address: ATTACKER, reads: true };
      using attackers = await openAttackers({ ...options, request });
      using silent = await openAttackers({ ...options, request: '' });
      for (let second = 0; second < (context.is_quick ? CALM_S : SECONDS); second += 1) {
        for (const connection of attackers.all) if (!connection.is_closed) connection.write(' ');
        await Bun.sleep(1_000);
      }
      return attackers.closedCount() + silent.closedCount();
    };
    const limits = { live_ms_max: LIVE_MS_MAX };
    const { result: closed } = await context.phase(subject, 'new clients, meanwhile', attack, limits);
    const reopen = async () => {
      const base_url = `http://127.0.0.1:${port}`;
      const text = 'GET / HTTP/1.1\r\n';
      using attackers = holdConnections({ base_url, address: ATTACKER, count: CONNECTIONS, text, reopens: true });
      await calm();
      return attackers.closedCount();
    };
    const again = await context.phase(subject, 'new clients, opened again', reopen, limits);
    const lost = program.output().split('database_lost').length - 1;
    context.expect(exactly('false database_lost events', 0, lost));
    context.note('connections of the attacker that were closed', `${closed} of ${CONNECTIONS}, then ${again.result}`);
    await context.phase(subject, 'new clients, afterwards', calm);
  },
};

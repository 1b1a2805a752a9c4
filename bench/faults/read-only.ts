import { openDatabaseOf } from './database.ts';
import { atMost, calm, type Fault, holds, secondsSince } from './fault.ts';

const SECONDS = 5;
const BACK_S_MAX = 15;
const BACK_S_WAITED = 45;
const OTHERS = "pid <> pg_backend_pid() and backend_type = 'client backend'";

export const readOnly: Fault = {
  name: 'read-only',
  title: `PostgreSQL is read-only for ${SECONDS} s after all connections were cut, as in a failover to a replica`,
  async run(context) {
    const subject = await context.start();
    const { api, administrator_token, url } = subject.program;
    const database = context.opened.use(openDatabaseOf(subject.home));
    await context.phase(subject, 'calm', calm);
    const setReadOnly = async (is_read_only: boolean) => {
      const change = is_read_only ? 'set default_transaction_read_only = on' : 'reset default_transaction_read_only';
      await database.execute(`alter database postgres ${change}`);
    };
    /** Creates a group and takes a seat. They use different connections, each of which is replaced within a second. */
    const write = async () => {
      const signal = AbortSignal.timeout(15_000);
      const group = { token: administrator_token, body: { display_name: 'Written' }, signal };
      const { status } = await api.call('POST', '/group/groups', group);
      const search = { token: subject.bystander.public_token, body: { game_modes: ['default'] }, signal };
      const find = await api.call('POST', '/matchmaker/lobbies/find', search);
      return status === 200 && find.status === 200;
    };
    const isReady = async () => (await fetch(`${url}/health/ready`)).ok;
    const during = async () => {
      await setReadOnly(true);
      await database.execute(`select pg_terminate_backend(pid) from pg_stat_activity where ${OTHERS}`);
      await Bun.sleep((SECONDS - 1) * 1_000);
      const is_ready = await isReady();
      await Bun.sleep(1_000);
      await setReadOnly(false);
      return is_ready;
    };
    const { result: was_ready } = await context.phase(subject, 'while it is read-only', during, {
      has_no_database: true,
    });
    context.expect(holds('not ready while nothing can be written', !was_ready));
    const started = performance.now();
    const back = async () => {
      while (secondsSince(started) < BACK_S_WAITED) {
        if (await write().catch(() => false)) break;
        await Bun.sleep(100);
      }
      return secondsSince(started);
    };
    const { result: back_s } = await context.phase(subject, 'until writes succeed again', back, {
      has_no_database: true,
    });
    context.expect(atMost('writes and finds succeed again, after', BACK_S_MAX, back_s, 's'));
    await context.phase(subject, 'afterwards', calm);
    context.expect(holds('ready afterwards', await isReady()));
  },
};

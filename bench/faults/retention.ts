import { openDatabaseOf } from './database.ts';
import { atMost, calm, exactly, type Fault, secondsSince } from './fault.ts';

const PIECES = 24_000;
const PIECES_QUICK = 4_800;
const PIECE_BYTES = 200;
/** The service checks once a minute; the rest is the time of the removal. */
const GONE_S_MAX = 100;
const GONE_S_WAITED = 150;

export const retention: Fault = {
  name: 'retention',
  title: 'a log of many pieces becomes too old at once',
  async run(context) {
    const subject = await context.start();
    const database = context.opened.use(openDatabaseOf(subject.home));
    await context.phase(subject, 'calm', calm);
    const pieces = context.is_quick ? PIECES_QUICK : PIECES;
    await database.execute(`
      insert into server_log_chunks (server_id, stream, first_line, line_count, ts, end_offset, total_bytes, content)
      select server_id, 'std_err', number, 1, now() - interval '4 days', number, number, repeat('x', ${PIECE_BYTES})::bytea
      from (select server_id from servers limit 1) as writer, generate_series(1, ${pieces}) as number`);
    const old = `select count(*) from server_log_chunks where ts < now() - interval '3 days' and length(content) > 0`;
    const forget = async () => {
      const started = performance.now();
      while (secondsSince(started) < GONE_S_WAITED && (await database.count(old)) > 0) await Bun.sleep(250);
      return { seconds: secondsSince(started), left: await database.count(old) };
    };
    const options = { deadline_s: GONE_S_WAITED + 10 };
    const { result } = await context.phase(subject, 'while they are forgotten', forget, options);
    context.expect(atMost('old pieces gone, after', GONE_S_MAX, result.seconds, 's'));
    context.expect(exactly(`pieces left, of ${pieces}`, 0, result.left));
  },
};

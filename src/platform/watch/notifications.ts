import { type SQL, sql } from 'drizzle-orm';

/** PostgreSQL's channel for changed topics. A payload has a line for each topic: `<version> <topic>`. */
export const CHANGES_CHANNEL = 'muster_changes';

/** PostgreSQL refuses payloads of 8,000 bytes. A payload may exceed this size by less than one line. */
const PAYLOAD_BYTES = sql.raw('7000');
/** The bytes of a line besides its topic: the version, a blank and the line break. */
const LINE_BYTES = sql.raw('21');

interface Change {
  topic: string;
  version: number;
}

/** Returns the expression that notifies of one topic and its version when the transaction commits. */
export function notify(topic: SQL, version: SQL): SQL {
  return sql`pg_notify(${CHANGES_CHANNEL}, ${version} || ' ' || ${topic})`;
}

/**
 * Returns the query that notifies of the rows `(topic, version)` of another query when the transaction commits. It must be
 * read to its end. One notification names about 140 topics, because every process that listens pays for each; for a topic
 * or two, {@link notify} costs PostgreSQL 20 µs less.
 */
export function notifyTogether(changes: SQL): SQL {
  return sql`
    select pg_notify(${CHANGES_CHANNEL}, string_agg(version || ' ' || topic, E'\\n'))
    from (
      select topic, version,
        sum(octet_length(topic) + ${LINE_BYTES}) over (rows unbounded preceding) / ${PAYLOAD_BYTES} as payload
      from (${changes}) as change (topic, version)
    ) as change
    group by payload`;
}

/** Returns the changes that a payload names. */
export function readNotification(payload: string): Change[] {
  return payload.split('\n').map((line) => {
    const blank = line.indexOf(' ');
    return { topic: line.slice(blank + 1), version: Number(line.slice(0, blank)) };
  });
}

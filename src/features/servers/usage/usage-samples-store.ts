import { and, asc, eq, gte, sql } from 'drizzle-orm';
import type { Queries } from '../../../platform/database/database.ts';
import { timestamptz } from '../../../platform/database/moments.ts';
import { deleteOldRows } from '../../../platform/database/old-rows.ts';
import { HOUR_MS, KIB } from '../../../platform/units.ts';
import { bump } from '../../../platform/watch/versions.ts';
import { topics } from '../../topics.ts';
import { minuteOf, serverSamples, servers, startOfMinute, type UsageSample } from '../tables.ts';

const MINUTES_PER_HOUR = 60;
const DELETED_AT_ONCE_MAX = 1_000;
/** The largest `integer` of PostgreSQL. */
const INTEGER_MAX = 2 ** 31 - 1;

/** Adds samples to the hours of their servers, and wakes watchers. A repeated sample adds nothing. */
export async function insertSamples(queries: Queries, samples: UsageSample[]): Promise<void> {
  // A statement changes each row once at most. Several minutes of a server come together after the database was
  // unavailable. Of two samples of one minute the first counts.
  const samples_by_minute = Map.groupBy(samples, ({ minute }) => minute);
  for (const samples_of_minute of samples_by_minute.values()) await insertMinute(queries, samples_of_minute);
}

async function insertMinute(queries: Queries, samples: UsageSample[]): Promise<void> {
  const first_of_each = new Map(samples.toReversed().map((sample) => [sample.server_id, sample]));
  const rows = [...first_of_each.values()].map(({ minute, cpu_ms, memory_bytes, ...sample }) => ({
    ...sample,
    hour_start: startOfMinute(minute - (minute % MINUTES_PER_HOUR)),
    minute: minute % MINUTES_PER_HOUR,
    // A sample that does not fit would make each attempt fail, with those of all other servers.
    cpu_ms: toInteger(cpu_ms),
    memory_kib: memory_bytes === null ? null : toInteger(memory_bytes / KIB),
  }));
  const added = (name: string) => {
    const identifier = sql.identifier(name);
    return sql`${identifier} = ${serverSamples}.${identifier} || excluded.${identifier}`;
  };
  await queries.execute(sql`
    with ${bump(samples.map(({ server_id }) => topics.usage(server_id)))},
    sample as (
      select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as one (
        server_id uuid, hour_start timestamptz, minute integer, cpu_ms integer, memory_kib integer,
        received_bytes bigint, sent_bytes bigint
      )
    ),
    added as (
      insert into ${serverSamples} (server_id, hour_start, minutes, cpu_ms, memory_kib, received_bytes, sent_bytes)
      select server_id, hour_start, array[minute], array[cpu_ms], array[memory_kib], array[received_bytes], array[sent_bytes]
      from sample where exists (select from ${servers} where ${servers.server_id} = sample.server_id)
      on conflict (server_id, hour_start) do update set ${sql.join(
        ['minutes', 'cpu_ms', 'memory_kib', 'received_bytes', 'sent_bytes'].map(added),
        sql`, `,
      )}
      where not ${serverSamples}.minutes @> excluded.minutes
    )
    select topic from bumped`);
}

/** Returns the samples of a server from a minute on, in order. */
export async function selectSamples(queries: Queries, server_id: string, from_minute: number): Promise<UsageSample[]> {
  const { hour_start } = serverSamples;
  const first_hour = startOfMinute(from_minute - (from_minute % MINUTES_PER_HOUR));
  const hours = await queries
    .select()
    .from(serverSamples)
    .where(and(eq(serverSamples.server_id, server_id), gte(hour_start, sql`${timestamptz(first_hour)}`)))
    .orderBy(asc(hour_start));
  const samples = hours.flatMap((hour) =>
    hour.minutes.map((minute, index) => ({
      server_id,
      minute: minuteOf(hour.hour_start) + minute,
      cpu_ms: hour.cpu_ms[index] ?? 0,
      memory_bytes: timesKib(hour.memory_kib[index]),
      received_bytes: toKnown(hour.received_bytes[index]),
      sent_bytes: toKnown(hour.sent_bytes[index]),
    })),
  );
  return samples.filter(({ minute }) => minute >= from_minute).sort((one, other) => one.minute - other.minute);
}

/** Deletes a batch of the hours that ended before a given time. Returns how many; more may remain. */
export async function deleteSamplesBefore(queries: Queries, moment: Date): Promise<number> {
  const oldest_kept = new Date(moment.getTime() - HOUR_MS);
  return await deleteOldRows(queries, serverSamples.hour_start, { before: oldest_kept, limit: DELETED_AT_ONCE_MAX });
}

const toInteger = (value: number): number => Math.min(Math.round(value), INTEGER_MAX);

function timesKib(kib: number | null | undefined): number | null {
  return kib === null || kib === undefined ? null : kib * KIB;
}

/** Returns an element of an array of bigint. Drizzle makes NaN of a null in it. */
function toKnown(element: number | null | undefined): number | null {
  return element === null || element === undefined || Number.isNaN(element) ? null : element;
}

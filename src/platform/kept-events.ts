import { describeMembers, type EventLevel, type EventName, type Events, LEVELS, type ServiceEvent } from './events.ts';

/** How many of the latest events of each level are kept. */
const KEPT_MAX = 1_000;
/** Maximum length of a text of a kept event. The log itself has longer ones. */
const TEXT_MAX = 1_000;
/** Maximum length of the details of a kept event as JSON. */
const DETAILS_MAX = 8_000;
const RANKS: Record<EventLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };
/** The levels of events that are kept. Debug events come with each request. */
export const KEPT_LEVELS = ['info', 'warn', 'error'] as const;
export type KeptLevel = (typeof KEPT_LEVELS)[number];

/** An event as plain data, without secrets. */
export interface DescribedEvent {
  /** Rises by one with each event of this process that is kept. */
  number: number;
  at: Date;
  level: EventLevel;
  event: EventName;
  /** Its members; `cut` is the beginning of their JSON if that is too long. */
  details: Record<string, unknown>;
}

/** Events that are counted, and of which the latest of each level are kept. */
export interface KeptEvents extends Events {
  /** Returns the latest events of a level or a worse one, oldest first. */
  list(level: KeptLevel, count_max: number): DescribedEvent[];
  /** Returns how many events of a name there were since the start. */
  count(name: EventName): number;
  /** Returns how many requests were answered since the start, by status. */
  countStatuses(): ReadonlyMap<number, number>;
}

/**
 * Returns events that are counted and kept, whatever the level of the log, and then emitted by `events`. Each is described
 * at once, because an error keeps what it refers to in memory, such as the parameters of a statement.
 */
export function keepEvents(events: Events): KeptEvents {
  const kept: Record<KeptLevel, DescribedEvent[]> = { info: [], warn: [], error: [] };
  const counts: Partial<Record<EventName, number>> = {};
  const statuses = new Map<number, number>();
  let kept_count = 0;

  function keep(event: ServiceEvent, level: KeptLevel): void {
    const of_level = kept[level];
    of_level.push({ number: kept_count, at: new Date(), level, event: event.event, details: describe(event) });
    if (of_level.length > KEPT_MAX) of_level.shift();
    kept_count += 1;
  }

  return {
    emit(event) {
      counts[event.event] = (counts[event.event] ?? 0) + 1;
      if (event.event === 'request_served') statuses.set(event.status, (statuses.get(event.status) ?? 0) + 1);
      const level = LEVELS[event.event];
      if (level !== 'debug') keep(event, level);
      events.emit(event);
    },
    list: (level, count_max) =>
      KEPT_LEVELS.filter((one) => RANKS[one] >= RANKS[level])
        .flatMap((one) => kept[one])
        .sort((one, other) => one.number - other.number)
        .slice(-count_max),
    count: (name) => counts[name] ?? 0,
    countStatuses: () => statuses,
  };
}

function describe(event: ServiceEvent): DescribedEvent['details'] {
  const text = JSON.stringify(describeMembers(event), (_, value) =>
    typeof value === 'string' ? value.slice(0, TEXT_MAX) : value,
  );
  return JSON.parse(text.length > DETAILS_MAX ? JSON.stringify({ cut: text.slice(0, DETAILS_MAX) }) : text);
}

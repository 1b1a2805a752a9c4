import {
  type EventLevel,
  type EventName,
  type Events,
  LEVELS,
  redact,
  SERIALIZERS,
  type ServiceEvent,
} from './events.ts';

/** How many of the latest events are kept. */
const KEPT_MAX = 1_000;
/** Maximum length of a text of a listed event. The log itself has longer ones. */
const TEXT_MAX = 1_000;
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
  details: Record<string, unknown>;
}

/** Events that are counted, and of which the latest are kept. */
export interface KeptEvents extends Events {
  /** Returns the latest events of a level or a worse one, oldest first. */
  list(level: KeptLevel, count_max: number): DescribedEvent[];
  /** Returns how many events of a name there were since the start. */
  count(name: EventName): number;
}

/**
 * Returns events that are counted and kept, whatever the level of the log, and then emitted by `events`. They are described
 * when they are read, so that emitting one costs little.
 */
export function keepEvents(events: Events): KeptEvents {
  const kept: { number: number; at: Date; event: ServiceEvent }[] = [];
  const counts: Partial<Record<EventName, number>> = {};
  let kept_count = 0;
  return {
    emit(event) {
      counts[event.event] = (counts[event.event] ?? 0) + 1;
      if (LEVELS[event.event] !== 'debug') {
        kept[kept_count % KEPT_MAX] = { number: kept_count, at: new Date(), event };
        kept_count += 1;
      }
      events.emit(event);
    },
    list: (level, count_max) =>
      kept
        .filter(({ event }) => RANKS[LEVELS[event.event]] >= RANKS[level])
        .sort((one, other) => one.number - other.number)
        .slice(-count_max)
        .map(({ number, at, event }) => ({ number, at, ...describe(event) })),
    count: (name) => counts[name] ?? 0,
  };
}

function describe({ event, ...members }: ServiceEvent): Pick<DescribedEvent, 'level' | 'event' | 'details'> {
  const serialized = Object.entries(members).map(([name, value]) => [name, serialize(name, value)]);
  const text = JSON.stringify(Object.fromEntries(serialized), (_, value) =>
    typeof value === 'string' ? redact(value).slice(0, TEXT_MAX) : value,
  );
  return { level: LEVELS[event], event, details: JSON.parse(text) };
}

/** Returns a member of an event as the log writes it. */
function serialize(name: string, value: unknown): unknown {
  return name in SERIALIZERS ? SERIALIZERS[name as keyof typeof SERIALIZERS](value as never) : value;
}

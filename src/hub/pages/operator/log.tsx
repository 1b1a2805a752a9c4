import type { Answer } from '../../data/api.ts';
import { search } from '../../data/router.ts';
import { Choice } from '../../parts/filters.tsx';
import { Polled } from '../../parts/polled.tsx';
import { Process } from '../../parts/process.tsx';
import { Section } from '../../parts/section.tsx';
import { datedClockOf } from '../../parts/time.tsx';

const LOG = '/cloud/service/log';
const REFRESH_MS = 5_000;

type LogEvent = Answer<typeof LOG, 'get'>['events'][number];

/** The latest events of the log of the process, newest first. */
export function ServiceLog() {
  const level = search.value.get('level') ?? undefined;
  return (
    <Section title="Log">
      <div class="row filters">
        <Choice
          name="level"
          label="Level"
          options={[
            ['warn', 'warnings and errors'],
            ['error', 'errors'],
          ]}
        />
      </div>
      <Polled path={LOG} query={{ level }} every_ms={REFRESH_MS}>
        {({ process, events }) => (
          <>
            <Process of={process} />
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
            <div class="log card" role="log" aria-label="Events" tabIndex={0}>
              {events.length === 0 && <p class="quiet">There is no such event since its start.</p>}
              {events.toReversed().map((event) => (
                <EventLine key={event.number} event={event} />
              ))}
            </div>
          </>
        )}
      </Polled>
    </Section>
  );
}

function EventLine({ event: { ts, level, event, details } }: { event: LogEvent }) {
  const tone = { error: 'bad', warn: 'warn' }[level] ?? 'quiet';
  return (
    <div class={level === 'error' ? 'line is-err' : 'line'}>
      <time class="quiet" dateTime={ts} title={ts}>
        {datedClockOf(ts)}
      </time>
      <span>
        <span class={tone}>{level}</span> <strong>{event}</strong> {describe(details)}
      </span>
    </div>
  );
}

/** Returns what is known of an event as one text. Of failures only the messages: the log itself has their stacks. */
function describe({ cause, ...others }: LogEvent['details']): string {
  const members = Object.entries(others).map(([name, value]) => `${name}=${textOf(value)}`);
  return [...members, ...messagesOf(cause)].join(' ');
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A failure and its cause, as the log has them; anything else that was thrown is a text. */
type Cause = { message: string; cause?: Cause } | string | undefined;

function messagesOf(cause: unknown): string[] {
  const failure = cause as Cause;
  if (failure === undefined) return [];
  if (typeof failure === 'string') return [`cause: ${failure}`];
  return [`cause: ${failure.message}`, ...messagesOf(failure.cause)];
}

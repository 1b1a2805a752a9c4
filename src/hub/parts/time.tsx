import { signal } from '@preact/signals';
import { MINUTE_MS, SECOND_MS } from '../../shared/units.ts';

const UNITS: [size: number, name: string][] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
];

const CLOCK = new Intl.DateTimeFormat([], {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  fractionalSecondDigits: 3,
});

/** With the hours of `CLOCK`, because a page shows both. */
const MOMENT = new Intl.DateTimeFormat([], { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });
const DATE = new Intl.DateTimeFormat([], { dateStyle: 'medium' });

/** The present time, set every second, from which ages are counted. */
export const now = signal(Date.now());
setInterval(() => {
  if (document.visibilityState === 'visible') now.value = Date.now();
}, SECOND_MS);

/** How long ago a moment was; the exact moment on hover. */
export function Age({ of }: { of: string | number }) {
  const moment = new Date(of);
  return (
    <time dateTime={moment.toISOString()} title={momentOf(moment)}>
      {durationOf(now.value - moment.getTime())}
    </time>
  );
}

/** How long it is until a moment, after a comma. */
export function Countdown({ to }: { to: string }) {
  return <>, {textLeft(to)}</>;
}

/** How long it is until a moment. */
export function Until({ moment }: { moment: string }) {
  return <>in {durationOf(Date.parse(moment) - now.value)}</>;
}

export function textLeft(to: string): string {
  return `${durationOf(Date.parse(to) - now.value)} left`;
}

/** Returns how much of a time is left, from 1 to 0. */
export function shareLeft(from: string, to: string): number {
  const [begin, end] = [Date.parse(from), Date.parse(to)];
  return Math.max(0, Math.min(1, (end - now.value) / Math.max(1, end - begin)));
}

/** Returns a duration in its largest unit. */
export function durationOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / SECOND_MS));
  const [size, name] = UNITS.find(([one]) => seconds >= one) ?? [1, 's'];
  return `${Math.floor(seconds / size)} ${name}`;
}

/** Returns the time of day here, to the millisecond. */
export function clockOf(moment: string | number | Date): string {
  return CLOCK.format(new Date(moment));
}

/** Returns the time of day here, after the date unless that is today's. */
export function datedClockOf(moment: string | number): string {
  return dayOf(moment) === dayOf(Date.now()) ? clockOf(moment) : `${dateOf(moment)}, ${clockOf(moment)}`;
}

/** Returns the date and the time here. */
export function momentOf(moment: string | number | Date): string {
  return MOMENT.format(new Date(moment));
}

export function dateOf(moment: string | number): string {
  return DATE.format(new Date(moment));
}

/** Returns the day of a moment here, to compare it with others: quicker than its date in words. */
export function dayOf(moment: string | number): string {
  return new Date(moment).toDateString();
}

/** Returns the date and the time here, such as "2026-11-30 17:56", for names that are sorted. */
export function minuteOf(moment: Date): string {
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * MINUTE_MS);
  return local.toISOString().slice(0, 16).replace('T', ' ');
}

import { clockOf, durationOf } from './time.tsx';

/** A moment in the life of a lobby or a server. */
export interface Step {
  name: string;
  at: string | number | undefined;
}

/** What has happened to a thing, in order, with the time between. */
export function Life({ steps }: { steps: Step[] }) {
  const known = steps.flatMap(({ name, at }) => (at === undefined ? [] : [{ name, at: new Date(at) }]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <ol class="life" aria-label="Life" tabIndex={0}>
      {known.map(({ name, at }, place) => {
        const before = known[place - 1];
        return (
          <li key={name}>
            {before && <span class="gap">{exactly(at.getTime() - before.at.getTime())}</span>}
            <span class="step">
              <strong>{name}</strong>
              <time dateTime={at.toISOString()} class="quiet">
                {clockOf(at)}
              </time>
            </span>
          </li>
        );
      })}
    </ol>
  );
}

function exactly(ms: number): string {
  return ms < 1_000 ? `${Math.max(0, ms)} ms` : durationOf(ms);
}

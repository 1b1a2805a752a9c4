import { type Static, Type } from '@sinclair/typebox';
import { oneOf, Timestamp } from '../../platform/http/shapes.ts';
import type { Counts } from './tables.ts';

export const CountersQuery = Type.Object({
  window: Type.Optional(
    oneOf('CountersWindow', ['hour', 'day', 'week'], {
      description:
        'The last hour in minutes, the last day in steps of 5 minutes (the default), or the last week in hours.',
    }),
  ),
});

const Count = Type.Integer({ minimum: 0 });
const CountersStep = Type.Object(
  {
    start_ts: Timestamp,
    players: Type.Integer({ description: 'The highest number of players with a seat, counted once a minute.' }),
    lobbies: Type.Integer({ description: 'The highest number of lobbies, counted once a minute.' }),
    finds: Type.Integer({ description: 'Finds that got a seat.' }),
    joins: Count,
    creates: Count,
    refused: Type.Record(Type.String(), Count, {
      description: 'Finds, joins and creates that got no seat, by the code of their error.',
    }),
    find_p50_ms: Type.Optional(
      Type.Number({ description: 'Half of the finds that got a seat took at most this long.' }),
    ),
    find_p95_ms: Type.Optional(
      Type.Number({
        description: '95 % of the finds that got a seat took at most this long; at most a tenth too high.',
      }),
    ),
  },
  { title: 'CountersStep' },
);

export const CountersAnswer = Type.Object({
  step_ms: Type.Integer(),
  steps: Type.Array(CountersStep, { description: 'Oldest first. A step in which nothing happened is left out.' }),
});

export const CountersOfAllAnswer = Type.Object({
  minutes: Type.Array(
    Type.Object(
      {
        start_ts: Timestamp,
        players: Type.Integer({ minimum: 0, description: 'With a seat.' }),
        lobbies: Count,
        seated: Type.Integer({ minimum: 0, description: 'Finds, joins and creates that got a seat.' }),
        refused: Type.Integer({ minimum: 0, description: 'Those that got none.' }),
      },
      { title: 'CountersMinute' },
    ),
    { description: 'Oldest first. A minute in which nothing happened is left out.' },
  ),
});

interface ReadStep {
  start_ts: Date;
  counts: Counts;
  find_p50_ms: number | undefined;
  find_p95_ms: number | undefined;
}

export function toStep({ start_ts, counts, find_p50_ms, find_p95_ms }: ReadStep): Static<typeof CountersStep> {
  const { players, lobbies, seated, refused } = counts;
  return {
    start_ts: start_ts.toISOString(),
    players,
    lobbies,
    finds: seated.find,
    joins: seated.join,
    creates: seated.create,
    refused,
    ...(find_p50_ms !== undefined && { find_p50_ms }),
    ...(find_p95_ms !== undefined && { find_p95_ms }),
  };
}

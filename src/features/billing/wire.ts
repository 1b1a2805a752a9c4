import { type Static, Type } from '@sinclair/typebox';
import { Moment } from '../../platform/http/moments.ts';
import { Uuid } from '../../platform/http/shapes.ts';

export const UsageQuery = Type.Object({
  query_start_ts: Type.Optional({
    ...Moment,
    description: 'Unix milliseconds or RFC 3339. By default, 30 days before the end.',
  }),
  query_end_ts: Type.Optional({ ...Moment, description: 'Unix milliseconds or RFC 3339. By default, now.' }),
});

/** Specification: Billing usage response. */
export const Usage = Type.Object({
  games: Type.Array(
    Type.Object({
      game_id: Uuid,
      regions: Type.Array(
        Type.Object({
          region_id: Uuid,
          uptime: Type.Integer({ description: 'Processor time used, in milliseconds.' }),
        }),
      ),
    }),
  ),
});
export type Usage = Static<typeof Usage>;

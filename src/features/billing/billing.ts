import type { Clock } from '../../platform/clock.ts';
import { toMoment } from '../../platform/database/moments.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import { DAY_MS } from '../../platform/units.ts';
import type { Games } from '../games/games.ts';
import type { Groups } from '../groups/groups.ts';
import { refuseProblem } from '../names.ts';
import type { Servers } from '../servers/servers.ts';
import type { Usage } from './wire.ts';

const MONTH_MS = 30 * DAY_MS;

export interface BillingDependencies {
  clock: Clock;
  groups: Groups;
  games: Games;
  servers: Servers;
}

export type Billing = ReturnType<typeof createBilling>;

/**
 * Creates the reports of processor time by a group's games, for operators who charge for it. Muster itself charges
 * nothing.
 */
export function createBilling({ clock, groups, games, servers }: BillingDependencies) {
  return {
    /**
     * Returns processor time by game and region within a window (Unix milliseconds, by default the last 30 days),
     * prorated in steps of ten minutes. Throws GROUP_NOT_FOUND, also for callers who are not members, or VALIDATION_ERROR.
     */
    async usageOf(
      { identity_id }: CallerOf<'identity'>,
      group_id: string,
      window: { start: number | undefined; end: number | undefined },
    ): Promise<Usage> {
      await groups.get(group_id);
      if (!(await groups.mayActAsMember({ group_id, identity_id }))) throw new ServiceError('GROUP_NOT_FOUND', {});
      const end = window.end ?? clock.now().getTime();
      const start = window.start ?? end - MONTH_MS;
      if (start > end) refuseWindow(window.end);
      const usage: Usage = { games: [] };
      let last: string | undefined;
      for (;;) {
        const game_ids = await games.idsOfGroup(group_id, last);
        if (game_ids.length === 0) return usage;
        const used = await servers.usageOf(game_ids, { start: toMoment(start), end: toMoment(end) });
        usage.games.push(...toUsageOfGames(game_ids, used));
        last = game_ids.at(-1);
      }
    },
  };
}

function toUsageOfGames(
  game_ids: string[],
  used: { game_id: string; datacenter_id: string; cpu_ms: number }[],
): Usage['games'] {
  const by_game = Map.groupBy(used, ({ game_id }) => game_id);
  return game_ids.map((game_id) => ({
    game_id,
    regions: (by_game.get(game_id) ?? []).map(({ datacenter_id, cpu_ms }) => ({
      region_id: datacenter_id,
      uptime: cpu_ms,
    })),
  }));
}

function refuseWindow(end: number | undefined): never {
  const until = end === undefined ? 'query_end_ts, which is now by default' : 'query_end_ts';
  refuseProblem(['query_start_ts', 'too-late'], `it is after ${until}`);
}

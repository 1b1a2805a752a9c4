import { Type } from '@sinclair/typebox';
import { type Caller, nameCaller } from '../tokens/caller.ts';
import { type Route, route } from './route.ts';
import { Timestamp } from './shapes.ts';

/** How many of the latest requests of this process are remembered. */
const REMEMBERED_MAX = 10_000;

/** A request that was answered. */
export interface Ray {
  ray_id: string;
  method: string;
  /** `/cloud/games/:game_id` */
  route: string;
  /** Milliseconds since 1970. */
  finished_at: number;
  duration_ms: number;
  /** Undefined if the request was not authenticated. */
  caller: Caller | undefined;
}

export type Rays = ReturnType<typeof createRays>;

/** Creates the memory of the latest requests, by the ray ids of their answers. Written far more often than read. */
export function createRays() {
  const latest: Ray[] = [];
  let recorded = 0;
  return {
    note(ray: Ray): void {
      latest[recorded % REMEMBERED_MAX] = ray;
      recorded += 1;
    },
    find: (ray_id: string): Ray | undefined => latest.find((ray) => ray.ray_id === ray_id),
  };
}

const Span = Type.Object({ label: Type.String(), start_ts: Timestamp, finish_ts: Timestamp });
const Perf = Type.Object({
  svc_name: Type.String(),
  ts: Timestamp,
  duration: Type.Integer({ description: 'Milliseconds.' }),
  spans: Type.Array(Span),
  marks: Type.Array(Type.Unknown()),
});

export function rayRoutes(rays: Rays): Route[] {
  return [
    route(
      'GET',
      '/cloud/rays/:ray_id/perf',
      {
        operation: 'getRayTimes',
        summary:
          'Returns how long a request of the caller took, by the ray id of its answer. The list is empty for other requests, and for one that is no longer among the latest.',
        allow: ['identity', 'cloud'],
        response: Type.Object({ perf_lists: Type.Array(Perf) }),
      },
      async ({ caller, params }) => {
        const ray = rays.find(params.ray_id);
        // A request of another caller looks like one that does not exist.
        if (!ray?.caller || nameCaller(ray.caller) !== nameCaller(caller)) return { perf_lists: [] };
        const start_ts = new Date(ray.finished_at - ray.duration_ms).toISOString();
        const finish_ts = new Date(ray.finished_at).toISOString();
        const spans = [{ label: `${ray.method} ${ray.route}`, start_ts, finish_ts }];
        return { perf_lists: [{ svc_name: 'muster', ts: start_ts, duration: ray.duration_ms, spans, marks: [] }] };
      },
    ),
  ];
}

import { Type } from '@sinclair/typebox';
import { LRUCache } from 'lru-cache';
import { type Route, route } from './route.ts';
import { Timestamp } from './shapes.ts';

/** How many of the latest requests of this process are remembered. */
const REMEMBERED_MAX = 10_000;

/** A request that was answered. */
export interface Ray {
  /** `GET /cloud/games/:game_id` */
  label: string;
  started: Date;
  duration_ms: number;
}

export type Rays = ReturnType<typeof createRays>;

/** What became of the latest requests, by the ray id that their answers carry. */
export function createRays() {
  const latest = new LRUCache<string, Ray>({ max: REMEMBERED_MAX });
  return {
    note: (ray_id: string, ray: Ray): void => void latest.set(ray_id, ray),
    find: (ray_id: string): Ray | undefined => latest.get(ray_id),
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
        summary: 'How long a request took, by the ray id of its answer; nothing for one that is not of the latest.',
        allow: ['identity', 'cloud'],
        response: Type.Object({ perf_lists: Type.Array(Perf) }),
      },
      async ({ params }) => {
        const ray = rays.find(params.ray_id);
        if (!ray) return { perf_lists: [] };
        const start_ts = ray.started.toISOString();
        const finish_ts = new Date(ray.started.getTime() + ray.duration_ms).toISOString();
        const spans = [{ label: ray.label, start_ts, finish_ts }];
        return { perf_lists: [{ svc_name: 'muster', ts: start_ts, duration: ray.duration_ms, spans, marks: [] }] };
      },
    ),
  ];
}

import { Type } from '@sinclair/typebox';
import { route } from '../../platform/http/route.ts';
import { averagePerMinute } from '../../platform/limits/limit.ts';
import type { Servers } from '../servers/servers.ts';
import { answeredWithin } from './traffic-counts.ts';
import type { GatewayTraffic } from './traffic-storing.ts';

const Count = Type.Integer({ minimum: 0 });
const WITHIN = 'Milliseconds within which this share of the answers began, rounded up.';
const Within = Type.Optional(Type.Integer({ minimum: 0, description: WITHIN }));

const TrafficAnswer = Type.Object({
  open: Type.Integer({ minimum: 0, description: 'WebSockets and relayed connections that are open.' }),
  requests: Count,
  sockets: Type.Integer({ minimum: 0, description: 'WebSockets that were opened.' }),
  connections: Type.Integer({ minimum: 0, description: 'TCP connections and UDP clients of relays.' }),
  received_bytes: Type.Integer({ minimum: 0, description: 'Bytes from players to the server.' }),
  sent_bytes: Type.Integer({ minimum: 0, description: 'Bytes from the server to players.' }),
  answer_ms: Type.Object({ p50: Within, p95: Within, p99: Within }, { title: 'AnswerTimes' }),
});

interface Dependencies {
  servers: Pick<Servers, 'get'>;
  traffic: Pick<GatewayTraffic, 'read'>;
}

export function gatewayRoutes({ servers, traffic }: Dependencies) {
  return [
    route(
      'GET',
      '/games/:game_id/environments/:environment_id/servers/:server_id/traffic',
      {
        operation: 'getServerTraffic',
        summary:
          'Returns what passed between players and a server through the gateway since its start, except in the last few seconds.',
        allow: ['identity', 'cloud', 'service'],
        access: 'read',
        limit: averagePerMinute('servers-traffic', 60_000),
        response: TrafficAnswer,
        errors: ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND', 'SERVERS_SERVER_NOT_FOUND'],
      },
      async ({ params: { game_id, environment_id, server_id } }) => {
        const server = await servers.get({ game_id, namespace_id: environment_id }, server_id);
        const { answers, open, ...counts } = await traffic.read(server.server_id);
        const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => answeredWithin(answers, share));
        // A failover of the database may lose that connections have opened.
        return { open: Math.max(open, 0), ...counts, answer_ms: { ...(p50 !== undefined && { p50, p95, p99 }) } };
      },
    ),
  ];
}

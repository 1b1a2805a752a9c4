import { expect } from 'bun:test';
import type { ServiceEvent } from '../../src/platform/events.ts';
import type { Answer, Api } from './api.ts';
import { type TestGame, uploadBuild } from './game.ts';
import { findProcessesOf } from './processes.ts';
import type { TestService } from './service.ts';
import { packTar } from './tar.ts';
import { waitFor } from './wait.ts';

type Stream = 'std_out' | 'std_err';
/** Changes to the body that creates a server. */
type Changes = { runtime?: object; network?: object; tags?: object; resources?: object; lifecycle?: object };

/** Returns the ids of the servers that a service has started, in the order of their start. */
export const startedBy = ({ events }: Pick<TestService, 'events'>): string[] =>
  events.flatMap((event) => (event.event === 'server_started' ? [event.server_id] : []));

/** A shell script that ignores SIGTERM, and writes a line once it does. */
export const STUBBORN = "trap '' TERM; echo ready; while :; do sleep 1; done";

/** Uploads a shell script as an archive, which starts at once, and returns the build's id. */
export async function uploadShell(api: Api, game: TestGame, script: string): Promise<string> {
  const content = await packTar([{ name: 'run.sh', content: script }]);
  return await uploadBuild(api, game, { kind: 'archive', path: 'server.tar', content, command: ['/bin/sh', 'run.sh'] });
}

/** Returns the calls by which a developer manages the servers of prod. */
export function serversOf({ api }: Pick<TestService, 'api'>, game: TestGame) {
  const { game_id, namespace_id, cloud_token: token } = game;
  const path = `/games/${game_id}/environments/${namespace_id}/servers`;

  const get = async (server_id: string) => (await api.ok('GET', `${path}/${server_id}`, { token })).server;
  const log = (server_id: string, stream: Stream = 'std_out', watch_index?: string): Promise<Answer> => {
    const watch = watch_index === undefined ? '' : `&watch_index=${watch_index}`;
    return api.get(`${path}/${server_id}/logs?stream=${stream}${watch}`, token);
  };
  const linesOf = async (server_id: string, stream?: Stream): Promise<string[]> => {
    const { status, body } = await log(server_id, stream);
    expect(status).toBe(200);
    return body.lines.map((line: string) => Buffer.from(line, 'base64').toString());
  };
  /** Returns all lines of a log, page by page: a server that goes on writing may have more than fit into one answer. */
  const allLinesOf = async (server_id: string, stream: Stream = 'std_out'): Promise<string[]> => {
    const all: string[] = [];
    for (;;) {
      const query = new URLSearchParams({ stream, first_line: String(all.length) });
      const { lines } = await api.ok('GET', `${path}/${server_id}/log-lines?${query}`, { token });
      if (lines.length === 0) return all;
      all.push(...lines.map(({ text }: { text: string }) => text));
    }
  };

  /** The body that creates a server of a build, with changes to it. */
  async function bodyOf(build: string, { runtime, network, ...more }: Changes = {}) {
    const environment = `/games/${game_id}/environments/${namespace_id}`;
    const { datacenters } = await api.ok('GET', `${environment}/datacenters`, { token });
    return {
      datacenter: datacenters[0].id,
      tags: {},
      resources: { cpu: 100, memory: 64 },
      ...more,
      runtime: { build, ...runtime },
      network: { ports: {}, ...network },
    };
  }

  return {
    path,
    get,
    log,
    linesOf,
    allLinesOf,
    bodyOf,
    create: (body: unknown): Promise<Answer> => api.post(path, token, body),
    /** Runs a shell script as a server, and returns its id. */
    async run(script: string, more: Changes = {}): Promise<string> {
      const body = await bodyOf(await uploadShell(api, game, script), more);
      return (await api.ok('POST', path, { token, body })).server.id;
    },
    destroy: (server_id: string, query = ''): Promise<Answer> =>
      api.call('DELETE', `${path}/${server_id}${query}`, { token }),
    /** Waits until it has started, and returns it. */
    waitForStart: (server_id: string) =>
      waitFor(async () => {
        const server = await get(server_id);
        return server.started_at !== undefined && server;
      }, 'the server to start'),
    /** Waits until it has started, or never will, and returns it. */
    waitForStartOrEnd: (server_id: string) =>
      waitFor(async () => {
        const server = await get(server_id);
        return (server.started_at !== undefined || server.destroyed_at !== undefined) && server;
      }, 'the server to start or to fail'),
    /** Waits until it has ended with all its processes, and returns it. */
    waitForEnd: (server_id: string) =>
      waitFor(async () => {
        const server = await get(server_id);
        return server.destroyed_at !== undefined && findProcessesOf(server_id).length === 0 && server;
      }, 'the server to be gone'),
    /** Waits until it has written this many lines, and returns them. */
    waitForLines: (server_id: string, count: number, stream?: Stream) =>
      waitFor(async () => {
        const lines = await linesOf(server_id, stream);
        return lines.length >= count && lines;
      }, `${count} lines`),
  };
}

type ServerEnded = Extract<ServiceEvent, { event: 'server_ended' }>;

/** Waits for the event that a server has ended, and returns it. */
export async function waitForEndEvent(
  { events }: Pick<TestService, 'events'>,
  server_id: string,
  wait_ms?: number,
): Promise<ServerEnded> {
  const isEnd = (event: ServiceEvent): event is ServerEnded =>
    event.event === 'server_ended' && event.server_id === server_id;
  return await waitFor(() => events.find(isEnd), 'the server to end', wait_ms);
}

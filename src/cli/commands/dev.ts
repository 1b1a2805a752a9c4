import { statSync } from 'node:fs';
import { openBrowser } from '../browser.ts';
import { openDevService } from '../dev/dev-service.ts';
import { listenForKeys } from '../dev/keys.ts';
import { describeEnding, LobbyEnding } from '../dev/lobby-ending.ts';
import { describePreview } from '../dev/preview.ts';
import { watchFiles } from '../dev/watched-files.ts';
import { environment } from '../environment.ts';
import { EXIT, Failure, toFailure } from '../failure.ts';
import { readLocalToken } from '../local-service.ts';
import { followServerLogs } from '../namespace-log.ts';
import { whyNoServiceHere } from '../no-service-here.ts';
import { ensureGame } from '../project/games.ts';
import { type Project, readProject } from '../project/project-file.ts';
import { listSources } from '../project/script.ts';
import { checkVersion } from '../project/version-check.ts';
import { createVersion, prepareVersion, switchTo } from '../project/versions.ts';
import { type Scope, Session } from '../session.ts';
import { listenForStop } from '../stop-signals.ts';
import { portOf } from '../url-parts.ts';
import { playBots } from './bots.ts';
import { describeLine, shortServerId } from './logs.ts';
import { makeHubLink } from './open.ts';

interface DevOptions {
  open: boolean;
  json?: boolean;
}

const KEYS = 'r ends all lobbies   b lets two bots play for 30 s   l hides or shows logs   o opens the page   q quits';

/**
 * Runs the game of this folder on this machine until ctrl-C: starts the service, creates the game, and puts every change of
 * the files live at once.
 */
export async function dev({ open, json = false }: DevOptions): Promise<void> {
  const why_not = whyNoServiceHere('dev');
  if (why_not !== undefined) throw new Failure(why_not);
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  // A second press of ctrl-C is for the service.
  void listenForStop(() => {}).then(stop);
  const { signal } = stopping;
  let project = readProject(process.cwd());
  const service = await openDevService(signal);
  try {
    const here = { url: service.url, token: readLocalToken(), game: project.game, namespace: 'prod', json };
    const session = await Session.open(here, signal);
    if (session.api.token === undefined) throw new Failure(foreignService(service.url));
    const { say } = session.output;
    for (const note of project.notes) say(note);
    const scope = await ensureGame(session).catch((error: unknown) => {
      const is_refused = error instanceof Failure && error.exit_code === EXIT.not_logged_in;
      throw is_refused ? new Failure(foreignService(service.url)) : error;
    });
    const openPage = await showAddresses(session, scope, project);
    await using files = await watchFiles(await listWatched(project));

    const report = (error: unknown) => {
      if (!signal.aborted) say(error instanceof Error ? error.message : String(error));
    };
    const ending = new LobbyEnding(session, scope, {
      signal,
      onEnded(count) {
        if (json) session.output.json({ event: 'lobbies_ended', count });
        say(`${count === 1 ? 'The closed lobby has' : `${count} closed lobbies have`} ended`);
      },
      onError: report,
    });
    let shows_logs = true;
    let live = '';
    let trial: Promise<unknown> = Promise.resolve();
    const tryVersion = (version_id: string) => {
      const tried = checkVersion(session, scope, version_id);
      trial = tried.catch(() => {});
      return tried;
    };
    const publish = async (what: string) => {
      try {
        project = readProject(process.cwd());
        for (const path of await listWatched(project)) files.add(path);
        live = await putLive(session, scope, { project, live, what, ending, tryVersion });
      } catch (error) {
        if (signal.aborted) return;
        const failure = toFailure(error);
        if (!failure) throw error;
        const { message } = failure;
        if (json) session.output.json({ event: 'failed', what, message });
        say(`${what}: ${message}\n${live === '' ? 'Correct it, and save.' : 'The version before stays live.'}`);
      }
    };
    const restart = async () => say(describeEnding(await ending.end(() => true)));
    using _ = listenForKeys({
      r: () => void restart().catch(report),
      b: () => void playBots('2', { ...here, for: '30s' }, signal).catch(report),
      l: () => {
        shows_logs = !shows_logs;
        say(shows_logs ? 'Logs are shown.' : 'Logs are hidden. Press l to see them.');
      },
      o: () => void openPage().catch(report),
      q: stop,
    });
    const logs = followServerLogs({
      session,
      scope,
      signal,
      with_running: false,
      onLine({ server_id, ...line }) {
        if (json) session.output.json({ event: 'log', server_id, ...line });
        else if (shows_logs) session.output.line(describeLine(line, server_id));
      },
      onEnd({ server_id, ...end }) {
        if (json) session.output.json({ event: 'server_ended', server_id, ...end });
        if (end.has_crashed) say(`${shortServerId(server_id)} ✗ ${end.summary}`);
      },
      onSkipped: (server_id, reason) => say(`The log of ${server_id} is not followed: ${reason}`),
    });

    const publishAll = async () => {
      await publish('The first version');
      if (open && process.stdout.isTTY) await openPage().catch(report);
      if (process.stdin.isTTY) say(KEYS);
      for (let changed = await files.next(signal); changed; changed = await files.next(signal)) {
        await publish(describeChange(changed));
      }
    };
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    // Packing and uploads do not hold up the stop. A lobby that is being tried does, because the service may run on.
    await Promise.race([publishAll(), service.ended, stopped, logs]);
    stop();
    await Promise.all([logs, ending.waitForEnds(), trial]);
  } finally {
    await service.stop();
  }
}

/**
 * Writes the addresses of the service and the game. Returns a function that opens the page of the game in a browser: its
 * site, or the hub if it has none.
 */
async function showAddresses(
  session: Session,
  { game, namespace }: Scope,
  { site }: Project,
): Promise<() => Promise<void>> {
  const { url } = session.api;
  const path = `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/tokens/public`;
  const { token: public_token } = await session.api.call<{ token: string }>('POST', path);
  const service_port = portOf(new URL(url));
  const page =
    site === undefined ? undefined : new URL(`http://${game.name_id}.sites.localhost:${service_port}`).origin;
  if (session.is_json) session.output.json({ event: 'ready', url, page, public_token });
  const { say } = session.output;
  say(`service       ${url}`);
  say(page === undefined ? `hub           ${url}/hub` : `players       ${page}, in two tabs`);
  say(`public token  ${public_token}`);
  const { preview, preview_server_ports: server_ports } = environment;
  if (preview) describePreview(preview, { service_port, server_ports }).forEach(say);
  return async () => void openBrowser(page ?? (await makeHubLink(session)).url);
}

/** Returns what to do about a service that was started elsewhere, because its token is not here. */
function foreignService(url: string): string {
  const port = portOf(new URL(url)) + 1;
  const ways = `give this one a port of its own (MUSTER_PORT=${port} muster dev), or log in to that one (muster login ${url})`;
  return `Another service runs at ${url}, and its token is not in ${environment.data_directory}: ${ways}.`;
}

/** Returns the files and directories to watch. Their changes are put live. */
async function listWatched({ file, build, site }: Project): Promise<string[]> {
  const is_script =
    build && build.dockerfile === undefined && statSync(build.path, { throwIfNoEntry: false })?.isFile();
  const sources = is_script ? await listSources(build.path) : [build?.path, build?.dockerfile];
  return [file, ...sources, site].filter((path) => path !== undefined);
}

function describeChange([first = '', ...others]: string[]): string {
  return others.length === 0 ? `${first} changed` : `${first} and ${others.length} more changed`;
}

interface Change {
  project: Project;
  /** The configuration that is live, as text. */
  live: string;
  what: string;
  ending: LobbyEnding;
  /** Tries a version. Returns a sentence about it. */
  tryVersion: (version_id: string) => Promise<string>;
}

/** Puts the folder's files live once a lobby of them becomes ready. Returns the configuration that is live then. */
async function putLive(session: Session, scope: Scope, change: Change): Promise<string> {
  const { project, live, what, ending, tryVersion } = change;
  const started = performance.now();
  const { config } = await prepareVersion(session, scope, project);
  const wanted = JSON.stringify(config);
  if (wanted === live) return live;
  const version_id = await createVersion(session, scope, { display_name: `dev ${new Date().toISOString()}`, config });
  if (config.matchmaker) session.output.say(await tryVersion(version_id));
  await switchTo(session, scope, version_id);
  const outdated = await ending.end(({ is_outdated }) => is_outdated);
  const { ended_count, closed_count } = outdated;
  const lobbies = ended_count + closed_count === 0 ? '' : `; of the old version, ${describeEnding(outdated)}`;
  const duration_ms = Math.round(performance.now() - started);
  if (session.is_json) session.output.json({ event: 'live', what, version_id, duration_ms, ended_count, closed_count });
  // In UTC, as the lines of logs.
  const clock = new Date().toISOString().slice(11, 19);
  session.output.say(`${clock} ${what}: live after ${duration_ms} ms${lobbies}`);
  return wanted;
}

import { dirname } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { SYSTEM_DATA_DIRECTORY } from '../../default-data-directory.ts';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { listenForStop } from '../../terminal/stop-signals.ts';
import { openBrowser } from '../browser.ts';
import { openDevService } from '../dev/dev-service.ts';
import { listenForKeys } from '../dev/keys.ts';
import { LiveFolder, listSourcesOf } from '../dev/live-folder.ts';
import { describeEnding, LobbyEnding } from '../dev/lobby-ending.ts';
import { describePreview } from '../dev/preview.ts';
import { type WatchedFiles, watchFiles } from '../dev/watched-files.ts';
import { environment } from '../environment.ts';
import { createPublicToken } from '../find.ts';
import { readLocalTokens } from '../local-service.ts';
import { followServerLogs } from '../namespace-log.ts';
import { whyNoServiceHere } from '../no-service-here.ts';
import { pause } from '../pause.ts';
import { ensureGame } from '../project/games.ts';
import { readDeployable } from '../project/project-content.ts';
import type { Project } from '../project/project-file.ts';
import { refusalOf, type Scope, Session, type SharedOptions } from '../session.ts';
import { portOf } from '../url-parts.ts';
import { playBots, showFigures } from './bots.ts';
import { describeLine, shortServerId } from './logs.ts';
import { makeHubLink } from './open.ts';

interface DevOptions {
  open: boolean;
  yes?: boolean;
  json?: boolean;
}

const KEYS = 'r ends all lobbies   b lets two bots play for 30 s   l hides or shows logs   o opens the page   q quits';
/** What the key b starts. */
const BOTS = { count: 2, duration: '30s' };
/** How long the requests of a stop may take. The service may not answer. */
const CLEAN_UP_MS = 15_000;

/**
 * Runs the game of this folder on this machine until ctrl-C: starts the service, creates the game, and puts every change of
 * the files live at once.
 */
export async function dev({ open, yes = false, json = false }: DevOptions): Promise<void> {
  const why_not = whyNoServiceHere('dev');
  if (why_not !== undefined) throw new Failure(why_not);
  const stopping = new AbortController();
  const hurrying = new AbortController();
  // A second press of ctrl-C ends the clean-up, and after that the service at once.
  void listenForStop(() => hurrying.abort()).then(() => stopping.abort());
  const { signal } = stopping;
  const project = readDeployable(process.cwd());
  const service = await openDevService(signal);
  try {
    const here = { url: service.url, game: project.game, namespace: 'prod', json };
    const session = await openSession(here, signal);
    for (const note of project.notes) session.output.say(note);
    if (service.ran_before && !yes) await confirmUse(session, signal);
    const scope = await ensureGame(session);
    const openPage = await showAddresses(session, scope, project);
    await using files = await watchFiles(await listSourcesOf(project));
    const run = new DevRun({ session, scope, files, openPage, stopping });
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    try {
      using _ = run.listenForKeys();
      // Packing and uploads do not hold up the stop.
      await Promise.race([run.followLogs(), run.publishChanges({ opens_page: open }), service.ended, stopped]);
    } finally {
      stopping.abort();
      await run.cleanUp(hurrying.signal);
    }
  } catch (error) {
    if (error !== signal.reason) throw error;
  } finally {
    await service.stop();
  }
}

interface DevParts {
  session: Session;
  scope: Scope;
  files: WatchedFiles;
  openPage: () => Promise<void>;
  stopping: AbortController;
}

/** The work of `muster dev` while its service runs. */
class DevRun {
  readonly #parts: DevParts;
  readonly #ending: LobbyEnding;
  readonly #folder: LiveFolder;
  #shows_logs = true;
  #logs: Promise<void> = Promise.resolve();
  #bots: Promise<unknown> = Promise.resolve();

  constructor(parts: DevParts) {
    const { session, scope, files, stopping } = parts;
    const { signal } = stopping;
    this.#parts = parts;
    this.#ending = new LobbyEnding(session, scope, {
      signal,
      onEnded(count) {
        if (session.is_json) session.output.json({ event: 'lobbies_ended', count });
        session.output.say(`${count === 1 ? 'The closed lobby has' : `${count} closed lobbies have`} ended`);
      },
      onError: (error) => this.#report(error),
    });
    this.#folder = new LiveFolder(session, scope, {
      signal,
      ending: this.#ending,
      onSources: (paths) => paths.forEach(files.add),
    });
  }

  /** Puts the files live, and then each change of them, until the stop. */
  async publishChanges({ opens_page }: { opens_page: boolean }): Promise<void> {
    const { session, files, openPage, stopping } = this.#parts;
    await this.#folder.publish('The first version');
    if (opens_page && process.stdout.isTTY) await openPage().catch((error) => this.#report(error));
    if (process.stdin.isTTY) session.output.say(KEYS);
    const next = () => files.next(stopping.signal);
    for (let changed = await next(); changed; changed = await next()) {
      await this.#folder.publish(describeChange(changed));
    }
  }

  /** Writes the logs of the game's servers until the stop. */
  followLogs(): Promise<void> {
    const { session, scope, stopping } = this.#parts;
    const { output, is_json } = session;
    this.#logs = followServerLogs({
      session,
      scope,
      signal: stopping.signal,
      with_running: false,
      onLine: ({ server_id, ...line }) => {
        if (is_json) output.json({ event: 'log', server_id, ...line });
        else if (this.#shows_logs) output.line(describeLine(line, server_id));
      },
      onEnd: ({ server_id, ...end }) => {
        if (is_json) output.json({ event: 'server_ended', server_id, ...end });
        if (end.has_crashed) output.say(`${shortServerId(server_id)} ✗ ${end.summary}`);
      },
      onSkipped: (server_id, reason) => output.say(`The log of ${server_id} is not followed: ${reason}`),
    });
    return this.#logs;
  }

  listenForKeys(): Disposable {
    const { openPage } = this.#parts;
    const start = (work: () => Promise<void>) => () => void work().catch((error) => this.#report(error));
    return listenForKeys({
      r: start(() => this.#endAllLobbies()),
      b: () => {
        const playing = this.#playBots().catch((error) => this.#report(error));
        this.#bots = Promise.all([this.#bots, playing]);
      },
      l: () => this.#switchLogs(),
      o: start(openPage),
      // Sends the signal of ctrl-C, which arrives here as this key, so that the next ctrl-C counts as the second one.
      q: () => process.kill(process.pid, 'SIGINT'),
    });
  }

  /**
   * Waits for a check under way, for closed lobbies, for the logs and for the figures of bots, because the service may run
   * on. Gives up after a while, or when the signal is aborted.
   */
  async cleanUp(hurry: AbortSignal): Promise<void> {
    const work = Promise.allSettled([this.#logs, this.#bots, this.#ending.waitForEnds(), this.#folder.waitForCheck()]);
    const is_done = await Promise.race([work.then(() => true), pause(CLEAN_UP_MS, hurry).then(() => false)]);
    const { api, output } = this.#parts.session;
    if (!is_done) output.say(`${api.url} may still have lobbies of a check: the clean-up was not finished.`);
  }

  async #endAllLobbies(): Promise<void> {
    this.#parts.session.output.say(describeEnding(await this.#ending.end(() => true)));
  }

  async #playBots(): Promise<void> {
    const { session, stopping } = this.#parts;
    await playBots({
      session,
      ...BOTS,
      stopping: stopping.signal,
      onEnd: (of_session, scope, figures) => showFigures(of_session, scope, figures, { event: 'bots' }),
    });
  }

  #switchLogs(): void {
    this.#shows_logs = !this.#shows_logs;
    this.#parts.session.output.say(this.#shows_logs ? 'Logs are shown.' : 'Logs are hidden. Press l to see them.');
  }

  #report(error: unknown): void {
    const { session, stopping } = this.#parts;
    if (!stopping.signal.aborted) session.output.say(error instanceof Error ? error.message : String(error));
  }
}

/** Opens a session with the administrator's token of this machine or, if that is of another service, with that of a login. */
async function openSession(here: SharedOptions & { url: string }, stopping: AbortSignal): Promise<Session> {
  for (const { token } of readLocalTokens()) {
    if ((await refusalOf(here.url, token)) !== undefined) continue;
    return await Session.open(here, { stopping, given_token: { token, source: 'data directory' } });
  }
  const session = await Session.open(here, { stopping });
  const { token } = session.api;
  if (token !== undefined && (await refusalOf(here.url, token)) === undefined) return session;
  throw new Failure(foreignService(session));
}

/** Returns what to do about a service that was started elsewhere, because its token is not here. */
function foreignService({ api: { url }, token_source }: Session): string {
  const port = portOf(new URL(url)) + 1;
  const log_in =
    token_source === 'environment'
      ? 'set MUSTER_TOKEN to a token of that one'
      : `log in to that one (muster login ${url})`;
  const ways = `give this one a port of its own (MUSTER_PORT=${port} muster dev), or ${log_in}`;
  return `Another service runs at ${url}, and its token is not in ${environment.data_directory}: ${ways}.`;
}

/**
 * Asks before it uses a service that was started elsewhere, because others may play there. A service is from elsewhere if its
 * token is not in this folder's data directory. Throws a Failure if the answer is not yes, and without a terminal.
 */
async function confirmUse({ api }: Session, signal: AbortSignal): Promise<void> {
  const local = readLocalTokens().find(({ token }) => token === api.token);
  if (local && dirname(local.file) !== SYSTEM_DATA_DIRECTORY) return;
  const warning = `A service runs at ${api.url} that "muster dev" of this folder did not start. Each change goes live there at once, and ends lobbies of older versions.`;
  if (!process.stdin.isTTY) throw new Failure(`${warning} To use it: muster dev --yes`, EXIT.wrong_use);
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await asking.question(`${warning} Use it? [y/N] `, { signal }).catch(() => {
      throw new Failure('Stopped. Nothing was changed.', EXIT.interrupted);
    });
    if (!/^y(es)?$/i.test(answer.trim())) throw new Failure('Nothing was changed.');
  } finally {
    asking.close();
  }
}

/**
 * Writes the addresses of the service and the game. Returns a function that opens the page of the game in a browser: its
 * site, or the hub if it has none.
 */
async function showAddresses(session: Session, scope: Scope, { site }: Project): Promise<() => Promise<void>> {
  const { url } = session.api;
  const public_token = await createPublicToken(session, scope);
  const service_port = portOf(new URL(url));
  const page =
    site === undefined ? undefined : new URL(`http://${scope.game.name_id}.sites.localhost:${service_port}`).origin;
  if (session.is_json) session.output.json({ event: 'ready', url, page, public_token });
  const { say } = session.output;
  say(`service       ${url}`);
  say(page === undefined ? `hub           ${url}/hub` : `players       ${page}, in two tabs`);
  say(`public token  ${public_token}`);
  const { preview, preview_server_ports: server_ports } = environment;
  if (preview) describePreview(preview, { service_port, server_ports }).forEach(say);
  return async () => void openBrowser(page ?? (await makeHubLink(session)).url);
}

function describeChange([first = '', ...others]: string[]): string {
  return others.length === 0 ? `${first} changed` : `${first} and ${others.length} more changed`;
}

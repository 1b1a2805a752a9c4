import { statSync } from 'node:fs';
import { Failure, toFailure } from '../../terminal/failure.ts';
import { assertDeployable } from '../project/project-content.ts';
import { type Project, readProject } from '../project/project-file.ts';
import { listSources } from '../project/script.ts';
import { checkVersion } from '../project/version-check.ts';
import { createVersion, prepareVersion, switchTo } from '../project/versions.ts';
import type { Scope, Session } from '../session.ts';
import { describeEnding, type LobbyEnding } from './lobby-ending.ts';

interface LiveFolderOptions {
  ending: LobbyEnding;
  /** Called before each deploy with the files and directories to watch. */
  onSources: (paths: string[]) => void;
  signal: AbortSignal;
}

/** Puts the files of a folder live in a namespace, again after each change of them. */
export class LiveFolder {
  /** The version that is live, with its configuration as text; undefined before the first one. */
  #live: { version_id: string; config: string } | undefined;
  /** The name of the game in the first configuration that was read. */
  #game: string | undefined;
  /** Whether the files could not be put live when they changed last. */
  #has_failed = false;
  #check: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly session: Session,
    private readonly scope: Scope,
    private readonly options: LiveFolderOptions,
  ) {}

  /** Puts the files live once a lobby of them becomes ready, and says so; or says what is wrong with them. */
  async publish(what: string): Promise<void> {
    try {
      await this.#putLive(what);
      this.#has_failed = false;
    } catch (error) {
      if (this.options.signal.aborted) return;
      const failure = toFailure(error);
      if (!failure) throw error;
      this.#has_failed = true;
      const advice = this.#live === undefined ? 'Correct it, and save.' : 'The version before stays live.';
      this.#sayFailure({ what, message: failure.message, advice });
    }
  }

  /** Waits until no version is being checked. */
  async waitForCheck(): Promise<void> {
    await this.#check;
  }

  async #putLive(what: string): Promise<void> {
    const { session, scope } = this;
    const started = performance.now();
    const project = readProject(process.cwd());
    this.options.onSources(await listSourcesOf(project));
    assertDeployable(project);
    this.#assertSameGame(project);
    const { config } = await prepareVersion(session, scope, project);
    const wanted = JSON.stringify(config);
    if (wanted === this.#live?.config) {
      this.#sayUnchanged(what, this.#live.version_id, started);
      return;
    }
    const version_id = await createVersion(session, scope, { display_name: `dev ${new Date().toISOString()}`, config });
    if (config.matchmaker) session.output.say(await this.#checkVersion(version_id));
    await switchTo(session, scope, version_id);
    this.#live = { version_id, config: wanted };

    const outdated = await this.#endOutdatedLobbies(what);
    const duration_ms = Math.round(performance.now() - started);
    if (session.is_json) session.output.json({ event: 'live', what, version_id, duration_ms, ...outdated });
    const ends = outdated && outdated.ended_count + outdated.closed_count > 0;
    const lobbies = ends ? `; of the old version, ${describeEnding(outdated)}` : '';
    session.output.say(`${timeOfDay()} ${what}: live after ${duration_ms} ms${lobbies}`);
  }

  /** After a failed change, says that the files describe the live version again. Says nothing after any other change. */
  #sayUnchanged(what: string, version_id: string, started: number): void {
    if (!this.#has_failed) return;
    const { output, is_json } = this.session;
    const duration_ms = Math.round(performance.now() - started);
    if (is_json) output.json({ event: 'live', what, version_id, duration_ms });
    output.say(`${timeOfDay()} ${what}: as before, so the version before stays live`);
  }

  /** Throws a Failure if the configuration names another game than at the start. */
  #assertSameGame({ file, game }: Project): void {
    this.#game ??= game;
    if (game === this.#game) return;
    throw new Failure(`${file} names the game ${game} now, but this runs ${this.#game}: start "muster dev" again.`);
  }

  async #checkVersion(version_id: string): Promise<string> {
    const checked = checkVersion(this.session, this.scope, { version_id });
    this.#check = checked.catch(() => {});
    return await checked;
  }

  /** Ends the lobbies of older versions. Says so if the service refuses: the new version is live all the same. */
  async #endOutdatedLobbies(what: string) {
    try {
      return await this.options.ending.end(({ is_outdated }) => is_outdated);
    } catch (error) {
      const failure = toFailure(error);
      if (this.options.signal.aborted || !failure) throw error;
      const advice =
        'The new version is live, but lobbies of older versions go on. They end with the next change, or with the key r.';
      this.#sayFailure({ what, message: failure.message, advice });
      return undefined;
    }
  }

  #sayFailure({ what, message, advice }: { what: string; message: string; advice: string }): void {
    const { output, is_json } = this.session;
    if (is_json) output.json({ event: 'failed', what, message });
    output.say(`${what}: ${message}\n${advice}`);
  }
}

/** Returns the time of day in UTC, as lines of logs have it. */
const timeOfDay = () => new Date().toISOString().slice(11, 19);

/** Returns the files and directories of a project that are deployed. */
export async function listSourcesOf({ file, build, site }: Project): Promise<string[]> {
  const is_script =
    build && build.dockerfile === undefined && statSync(build.path, { throwIfNoEntry: false })?.isFile();
  const sources = is_script ? await listSources(build.path) : [build?.path, build?.dockerfile];
  return [file, ...sources, site].filter((path) => path !== undefined);
}

import { EXIT, Failure } from '../../terminal/failure.ts';
import { showWhile } from '../../terminal/progress-line.ts';
import { doStoppable } from '../../terminal/stop-signals.ts';
import { readWait } from '../durations.ts';
import { environment } from '../environment.ts';
import { startBackgroundDeploy } from '../project/background.ts';
import { ensureGame, findScope } from '../project/games.ts';
import { countOldLobbies, describeOldLobbies, waitForOldLobbies } from '../project/old-lobbies.ts';
import { readDeployable } from '../project/project-content.ts';
import type { Project } from '../project/project-file.ts';
import { PROJECT_FILE } from '../project/project-shape.ts';
import { checkVersion } from '../project/version-check.ts';
import { createVersion, dryRunVersion, prepareVersion, reserveName, switchTo } from '../project/versions.ts';
import { type Scope, Session, type SharedOptions, withNamespace } from '../session.ts';
import { readVersion } from './versions.ts';

interface DeployOptions extends SharedOptions {
  message?: string;
  dryRun?: boolean;
  check: boolean;
  region?: Record<string, string>;
  version?: string;
  wait?: string | true;
  detach?: boolean;
}

/** A version to put a namespace on. */
interface Candidate {
  version_id: string;
  display_name: string;
  /** Whether it has lobbies, one of which can be checked. */
  has_lobbies: boolean;
  /** The ids of what was uploaded for it. */
  uploaded: { image_id?: string | undefined; site_id?: string | undefined };
}

/** As long as a service allows by default, for servers that start slowly, and images that a cluster has to fetch. */
const READY_WITHIN_MS = 5 * 60_000;

/** Deploys. A signal such as ctrl-C stops it, and no lobby of a version that is not live is left. */
export async function deploy(namespace: string | undefined, options: DeployOptions): Promise<void> {
  let outcome = 'Nothing was switched.';
  const onLive = () => {
    outcome = 'The new version is live.';
  };
  await doStoppable({
    work: (stopping) => deployUntil(stopping, withNamespace(options, namespace), onLive),
    describeStop: () => `Stopped. ${outcome}`,
  });
}

/**
 * Deploys the game of this folder: uploads the server and the site if they changed, creates a version, checks it with a lobby
 * of its own, and puts the namespace on it; calls `onLive` then. With `--version`, takes an existing version.
 */
async function deployUntil(stopping: AbortSignal, options: DeployOptions, onLive: () => void): Promise<void> {
  const wait_ms = readWait(options.wait);
  const project = options.version === undefined ? readDeployable(process.cwd()) : undefined;
  if (project && options.region) refuseRegionNames(project);
  const game = options.game ?? environment.game ?? project?.game;
  const session = await Session.open({ ...options, ...(game && { game }) }, { stopping });
  const { say } = session.output;
  for (const note of project?.notes ?? []) say(note);
  if (project && options.dryRun) return await dryRun(session, project, options);

  const started = performance.now();
  const scope = project ? await ensureGame(session) : await session.scope();
  if (options.message !== undefined) refuseUsedName(session, scope, options.message);
  const candidate = project
    ? await uploadVersion(session, scope, project, options)
    : await chooseVersion(session, scope, options.version ?? '');
  const { version_id, display_name, has_lobbies, uploaded } = candidate;
  const { game: deployed, namespace } = scope;
  // Only an existing version can be live: a new one was just created.
  const is_live = version_id === namespace.version_id;
  const answer = { version_id, namespace: namespace.name_id, game: deployed.name_id, ...uploaded };
  const is_checked = options.check && has_lobbies && !is_live;
  if (options.detach && is_checked) {
    const detached = await startBackgroundDeploy(session, scope, version_id);
    return session.show({ ...answer, detached }, () => {
      say(
        `${display_name} is uploaded. Process ${detached.pid} checks it and switches; its output goes to ${detached.log}`,
      );
      say(`Which version is live: ${session.commandFor(deployed, `status --namespace ${namespace.name_id}`)}`);
    });
  }
  if (is_checked) {
    say(
      await showWhile('check    a lobby of the version', () =>
        checkVersion(session, scope, { version_id, ready_within_ms: READY_WITHIN_MS }),
      ),
    );
  }
  if (!is_live) await switchTo(session, scope, version_id);
  onLive();

  const old_lobbies = await countOldLobbies(session, scope, version_id);
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  session.show({ ...answer, old_lobbies }, (output) => {
    const place = `${answer.game} ${answer.namespace}`;
    const change = is_live
      ? `${display_name} is live already`
      : `${liveBefore(scope)} → ${display_name} (${seconds} s)`;
    output.line(`${place}: ${change}`);
    const undo = session.commandFor(deployed, `rollback ${namespace.name_id}`);
    const has_undo = !is_live && !environment.is_throwaway;
    output.say(`${describeOldLobbies(old_lobbies)}${has_undo ? ` To undo: ${undo}` : ''}`);
  });
  if (wait_ms !== undefined) await waitForOldLobbies(session, scope, { version_id, within_ms: wait_ms });
}

/** Throws a Failure for a project with muster.yaml: `--region` renames only the regions of a Rivet configuration. */
function refuseRegionNames({ file }: Project): void {
  if (file !== PROJECT_FILE) return;
  throw new Failure(
    `--region renames regions of a Rivet configuration, but this folder has ${PROJECT_FILE}: write the service's names ("muster regions") in it.`,
    EXIT.wrong_use,
  );
}

/** Throws a Failure if a version of the game has a name already. The service would refuse it after the uploads. */
function refuseUsedName(session: Session, { game, namespace }: Scope, name: string): void {
  if (!game.versions.some(({ display_name }) => display_name === name)) return;
  const take_it = session.commandFor(game, `deploy ${namespace.name_id} --version ${JSON.stringify(name)}`);
  throw new Failure(
    `The game has a version "${name}" already. Choose another --message, or put the namespace on that version: ${take_it}`,
    EXIT.wrong_use,
  );
}

/** Uploads what changed in this folder, and creates a version of it. */
async function uploadVersion(
  session: Session,
  scope: Scope,
  project: Project,
  { region, message }: DeployOptions,
): Promise<Candidate> {
  const { config, ...uploaded } = await prepareVersion(session, scope, project, region);
  const display_name = message ?? (await reserveName(session, scope));
  const version_id = await createVersion(session, scope, { display_name, config });
  return { version_id, display_name, has_lobbies: config.matchmaker !== undefined, uploaded };
}

async function chooseVersion(session: Session, { game }: Scope, name: string): Promise<Candidate> {
  const { version_id, display_name, config } = await readVersion(session, game, name);
  return { version_id, display_name, has_lobbies: 'matchmaker' in config, uploaded: {} };
}

/** Returns the name of the version that the namespace had when the command began. */
function liveBefore({ game, namespace }: Scope): string {
  return game.versions.find(({ version_id }) => version_id === namespace.version_id)?.display_name ?? '-';
}

/** Says what the deploy would do (`--dry-run`). Changes nothing, neither here nor on the service. */
async function dryRun(session: Session, project: Project, options: DeployOptions): Promise<void> {
  const scope = await findScope(session);
  if (!scope) session.output.say(`game     ${session.game_name} would be new`);
  await dryRunVersion(session, scope, project, options.region);
  const answer = { dry_run: true, game: session.game_name, namespace: scope?.namespace.name_id };
  session.show(answer, ({ say }) => say('Nothing was changed (--dry-run).'));
}

import { basename } from 'node:path';
import { showBytes } from '../../terminal/bytes.ts';
import { Failure } from '../../terminal/failure.ts';
import { paths } from '../paths.ts';
import type { Scope, Session } from '../session.ts';
import { describeProblems, isAboutTier } from './config-problems.ts';
import { listFiles } from './files.ts';
import { packServer } from './package.ts';
import type { Project } from './project-file.ts';
import { PROJECT_FILE } from './project-shape.ts';
import { fitRegions } from './regions.ts';
import { findBuild, findSite, sayContent, sayLeftOut, sendBuild, sendSite } from './uploads.ts';

/** The ids of what was uploaded. */
interface Uploaded {
  image_id: string | undefined;
  site_id: string | undefined;
}

/** A configuration that the service accepts. */
export interface Prepared extends Uploaded {
  config: ReturnType<typeof configOf>;
}

/** Names of the service's regions, by those of a configuration. */
type RegionNames = Readonly<Record<string, string>>;

/** Uploads what changed, and has the service check the configuration. Throws a Failure that names what is wrong. */
export async function prepareVersion(
  session: Session,
  scope: Scope,
  given: Project,
  renamed: RegionNames = {},
): Promise<Prepared> {
  const project = fitProject(session, scope, given, renamed);
  const image_id = project.build && (await sendBuild(session, scope, project.build));
  const site_id = project.site === undefined ? undefined : await sendSite(session, scope, project.site);
  const config = configOf(project, { image_id, site_id });
  await refuse(session, scope, config, await validate(session, scope, config));
  return { image_id, site_id, config };
}

/** Says what would be uploaded, and has the service check the configuration. Changes nothing. */
export async function dryRunVersion(
  session: Session,
  scope: Scope | undefined,
  given: Project,
  renamed: RegionNames = {},
): Promise<void> {
  const project = scope ? fitProject(session, scope, given, renamed) : given;
  const { say } = session.output;
  const { build } = project;
  if (build?.dockerfile !== undefined)
    say(`build    ${basename(build.dockerfile)} would be built, and sent if it is new`);
  const server = build && build.dockerfile === undefined ? await packServer(build, session.api.stopping) : undefined;
  const known = server && scope && (await findBuild(session, scope, server));
  if (build && server) {
    sayContent(session, build, server);
    await using content = await server.open();
    const size = showBytes(content.blob.size);
    say(known ? `build    the same as ${known.display_name}` : `build    ${server.file_name}, ${size}: would be sent`);
  }
  if (project.site !== undefined) {
    const listed = listFiles(project.site);
    sayLeftOut(session, listed);
    const { files } = listed;
    const same = scope && (await findSite(session, scope, files));
    say(same ? 'site     the same as before' : `site     ${files.length} files: would be sent`);
  }
  if (!scope) return;
  const config = configOf(project, { image_id: known?.build_id, site_id: undefined });
  const problems = await validate(session, scope, config);
  await refuse(
    session,
    scope,
    config,
    problems.filter((problem) => !FILLED_IN.test(problem)),
  );
}

/** Problems that a configuration has only until the ids of its uploads are filled in. */
const FILLED_IN = /\.(no-build|no-site-id)$/;

/** Returns what the service finds wrong with a configuration. */
async function validate({ api }: Session, { game }: Scope, config: Prepared['config']): Promise<string[]> {
  const body = { display_name: 'check', config };
  const path = `/cloud/games/${game.game_id}/versions/validate`;
  const { errors } = await api.call<{ errors: { path: string[] }[] }>('POST', path, { body });
  return errors.map((error) => error.path.join('.'));
}

/** Leaves out the regions of a Rivet configuration that the service does not have, and says so. */
function fitProject({ output }: Session, { game }: Scope, project: Project, renamed: RegionNames): Project {
  if (project.file === PROJECT_FILE) return project;
  const known = game.available_regions.map(({ region_name_id }) => region_name_id);
  const { config, foreign } = fitRegions(project.config, { known, renamed });
  if (foreign.length > 0)
    output.say(`regions  not here, so left out: ${foreign.join(', ')}; here are ${known.join(', ')}`);
  return { ...project, config };
}

/** Throws a Failure if the service found something wrong with a configuration. */
async function refuse(
  { api }: Session,
  { game }: Scope,
  { matchmaker }: Prepared['config'],
  problems: string[],
): Promise<void> {
  if (problems.length === 0) return;
  const regions = game.available_regions.map(({ region_name_id }) => region_name_id);
  const { tiers } = problems.some(isAboutTier)
    ? await api.get<{ tiers: { tier_name_id: string }[] }>('/cloud/region-tiers')
    : { tiers: [] };
  const known = { regions, tiers: tiers.map(({ tier_name_id }) => tier_name_id) };
  const words = describeProblems(problems, matchmaker, known);
  throw new Failure(`The service refuses the configuration: ${words}. Correct these keys.`);
}

/** Returns a name for a version that no other deploy gets: the day and a number. */
export async function reserveName({ api }: Session, { game }: Scope): Promise<string> {
  const path = `/cloud/games/${game.game_id}/versions/reserve-name`;
  return (await api.call<{ version_display_name: string }>('POST', path)).version_display_name;
}

/** Creates a version. Returns its id. */
export async function createVersion(
  session: Session,
  { game }: Scope,
  { display_name, config }: { display_name: string; config: Prepared['config'] },
): Promise<string> {
  const body = { display_name, config };
  const path = `/cloud/games/${game.game_id}/versions`;
  return (await session.api.call<{ version_id: string }>('POST', path, { body })).version_id;
}

/** Puts a namespace on a version. */
export async function switchTo(session: Session, scope: Scope, version_id: string): Promise<void> {
  await session.api.call('PUT', `${paths.namespace(scope)}/version`, { body: { version_id } });
}

/** Returns the version's configuration, with the ids of what was uploaded. A build that a game mode names itself stays. */
function configOf({ config, build, site }: Project, { image_id, site_id }: Uploaded) {
  const { matchmaker, cdn, ...others } = config;
  const withBuild = (docker: unknown) => ({ ...(image_id !== undefined && { image_id }), ...(docker as object) });
  const modes = Object.entries((matchmaker?.game_modes ?? { default: {} }) as Record<string, { docker?: object }>);
  const game_modes = Object.fromEntries(
    modes.map(([name, mode]) => [name, mode.docker ? { ...mode, docker: withBuild(mode.docker) } : mode]),
  );
  return {
    ...others,
    ...((build || matchmaker) && {
      matchmaker: { ...matchmaker, game_modes, ...(build && { docker: withBuild(matchmaker?.docker) }) },
    }),
    ...((site !== undefined || cdn) && { cdn: { ...cdn, ...(site_id !== undefined && { site_id }) } }),
  };
}

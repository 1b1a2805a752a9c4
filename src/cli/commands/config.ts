import { relative } from 'node:path';
import { stringify } from 'yaml';
import schema from '../../../docs/muster.schema.json' with { type: 'json' };
import { terminal } from '../../terminal/terminal.ts';
import { readDeployable } from '../project/project-content.ts';
import { type Project, readProject } from '../project/project-file.ts';

interface ConfigOptions {
  json?: boolean;
}

/** Checks the configuration of this folder, and the files that it names. Needs no service. */
export async function checkConfig({ json = false }: ConfigOptions): Promise<void> {
  const project = readDeployable(process.cwd());
  if (json) return terminal.json({ is_valid: true, ...toContent(project) });
  for (const note of project.notes) terminal.say(note);
  const { build, site } = project;
  const parts = [build && `server ${fromHere(build.dockerfile ?? build.path)}`, site && `site ${fromHere(site)}`];
  terminal.line(`${project.file} is valid: game ${project.game}, ${parts.filter(Boolean).join(', ')}`);
}

/** Shows the configuration of this folder as a deploy takes it. */
export async function showConfig({ json = false }: ConfigOptions): Promise<void> {
  const project = readProject(process.cwd());
  for (const note of project.notes) terminal.say(note);
  const content = toContent(project);
  if (json) return terminal.json(content);
  for (const line of stringify(content).trimEnd().split('\n')) terminal.line(line);
}

/** Writes the JSON schema of muster.yaml, for editors. */
export async function showSchema({ json = false }: ConfigOptions): Promise<void> {
  if (json) terminal.json(schema);
  else terminal.record(schema);
}

/** Returns the content of a muster.yaml for a project. */
function toContent({ game, build, site, config }: Project): object {
  return {
    game,
    ...(build && {
      build: {
        ...build,
        path: fromHere(build.path),
        ...(build.dockerfile !== undefined && { dockerfile: fromHere(build.dockerfile) }),
      },
    }),
    ...(site !== undefined && { site: fromHere(site) }),
    ...config,
  };
}

function fromHere(path: string): string {
  return relative('.', path) || '.';
}

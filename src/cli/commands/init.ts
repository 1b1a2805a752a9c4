import { existsSync, writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { terminal } from '../../terminal/terminal.ts';
import { draftProject, fitDraft } from '../project/draft.ts';
import { PROJECT_FILE } from '../project/project-shape.ts';
import { Session } from '../session.ts';

interface InitOptions {
  from?: string;
  region?: Record<string, string>;
  json?: boolean;
}

/** Writes muster.yaml for this folder, from what it finds in the files. Never replaces an existing one. */
export async function init({ from, region = {}, json = false }: InitOptions): Promise<void> {
  if (existsSync(PROJECT_FILE))
    throw new Failure(`There is a ${PROJECT_FILE} already: change that, or remove it first.`, EXIT.wrong_use);
  if (from !== undefined && !existsSync(from))
    throw new Failure(`There is no ${from}: name a configuration of Rivet, such as rivet.toml.`, EXIT.not_found);
  const read = draftProject('.', { from });
  // The service and its regions are not known before a deploy.
  const { content, file, understood, notes, portless_server } = fitDraft(read, { known: [], renamed: region });
  for (const note of notes) terminal.say(`note     ${note}`);
  if (!content.build && content.site === undefined && file === undefined) {
    const known = 'a script such as server.ts, a program for Linux, a Dockerfile, or a site such as public/index.html';
    throw new Failure(`This folder has no server and no site that Muster recognizes. Add ${known}.`, EXIT.not_found);
  }
  const { api } = await Session.open({});
  writeFileSync(PROJECT_FILE, `${schemaComment(api.url)}\n${stringify(content)}`, { flag: 'wx' });
  terminal.say(`${file === undefined ? 'found   ' : `read     ${file}:`} ${understood}`);
  if (portless_server !== undefined)
    terminal.say(`note     ${file} has no ports (${portless_server}): check matchmaker.docker.ports`);
  const needs_build = content.matchmaker && !content.build;
  const next = needs_build ? 'Add "build" to it: no server was found. Then: muster deploy' : 'Next: muster deploy';
  terminal.say(`Wrote ${PROJECT_FILE}. ${next}`);
  if (json) terminal.json({ file: PROJECT_FILE, read: file, content, notes });
}

/** Returns the comment that names the file's schema, from which editors know its keys. */
function schemaComment(service_url: string): string {
  return `# yaml-language-server: $schema=${service_url}/muster.schema.json`;
}

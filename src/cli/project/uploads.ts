import { basename } from 'node:path';
import { showBytes } from '../../terminal/bytes.ts';
import { showWhile } from '../../terminal/progress-line.ts';
import type { Scope, Session } from '../session.ts';
import { type DeployedFiles, describeSecrets, describeUnreadable, listFiles, type ProjectFile } from './files.ts';
import { packServer, type ServerPackage } from './package.ts';
import type { Build } from './project-file.ts';
import { completeUpload, findMissing, sendParts, type UploadPart } from './transfer.ts';

/** The tag with the digest of a build's files. */
const DIGEST_TAG = 'muster-digest';
/** The tag with the digest of the bytes that are sent: an interrupted upload goes on only with the same bytes. */
const CONTENT_TAG = 'muster-content';
const SITE_DIGEST_LENGTH = 32;
/** An interrupted upload sends whole parts again. */
const PART_BYTES = 8 * 1024 ** 2;

/** A build that the service has, completely or in part. */
interface KnownBuild {
  build_id: string;
  upload_id: string;
  display_name: string;
  complete: boolean;
  tags: Record<string, string>;
}

/** Returns the build with the files of a package, if the service has one. */
export async function findBuild(
  session: Session,
  scope: Scope,
  server: ServerPackage,
): Promise<KnownBuild | undefined> {
  return (await listBuilds(session, scope, server)).find(({ complete }) => complete);
}

/** Returns the builds with the files of a package, also those that were not sent to the end. */
async function listBuilds({ api }: Session, { game }: Scope, { digest }: ServerPackage): Promise<KnownBuild[]> {
  const { builds } = await api.get<{ builds: KnownBuild[] }>(`/cloud/games/${game.game_id}/builds`);
  return builds.filter(({ tags }) => tags[DIGEST_TAG] === digest);
}

/** A site that the service has. */
interface KnownSite {
  site_id: string;
  upload_id: string;
  display_name: string;
  complete: boolean;
}

/** Returns the site with these files, if the service has one. */
export async function findSite(session: Session, scope: Scope, files: ProjectFile[]): Promise<KnownSite | undefined> {
  return (await listSites(session, scope, digestSite(await digestFiles(files)))).find(({ complete }) => complete);
}

/** Returns the sites with the files of a digest, also those that were not sent to the end. */
async function listSites({ api }: Session, scope: Scope, digest: string): Promise<KnownSite[]> {
  const { sites } = await api.get<{ sites: KnownSite[] }>(sitesOf(scope));
  return sites.filter(({ display_name }) => display_name.endsWith(digest));
}

/** Uploads a server, or the parts of it that the service does not have. Returns the id of the build. */
export async function sendBuild(session: Session, scope: Scope, build: Build): Promise<string> {
  const { api, output } = session;
  const server = await packServer(build, api.stopping);
  sayContent(session, build, server);
  const listed = await listBuilds(session, scope, server);
  const known = listed.find(({ complete }) => complete);
  if (known) {
    output.say(`build    the same as ${known.display_name}: not sent again`);
    return known.build_id;
  }
  await using content = await server.open();
  const { blob } = content;
  const content_digest = await showWhile('build    reading the packed server', () => digestContent(blob));
  const unfinished = listed.find(({ tags }) => tags[CONTENT_TAG] === content_digest);
  const { build_id, parts } = unfinished
    ? { ...unfinished, parts: await findMissing(api, { game_id: scope.game.game_id, upload_id: unfinished.upload_id }) }
    : await prepareBuild(session, scope, { server, blob, content_digest });
  await sendParts(session, {
    label: `build    ${server.file_name}`,
    parts,
    total_bytes: blob.size,
    contentOf: () => blob,
    isComplete: async () => (await findBuild(session, scope, server)) !== undefined,
  });
  // An unfinished build may have been begun for another namespace, in which only its upload can be completed.
  const path = unfinished ? `/cloud/uploads/${unfinished.upload_id}` : `${buildsOf(scope)}/${build_id}`;
  await showWhile('build    the service checks it', () => completeUpload(session, path));
  output.say(`build    ${server.file_name}, ${sizeOf(blob.size, parts)}`);
  return build_id;
}

interface PackedBuild {
  server: ServerPackage;
  blob: Blob;
  content_digest: string;
}

/** Prepares a build, with the tags by which its upload is found again after an interruption. */
async function prepareBuild({ api }: Session, scope: Scope, { server, blob, content_digest }: PackedBuild) {
  const { kind, command, isolation, file_name, digest } = server;
  const path = buildsOf(scope);
  const name = `${file_name} ${new Date().toISOString().slice(0, 19)}`;
  const image_file = { path: file_name, content_length: blob.size };
  const how = { multipart_upload: true, part_length: PART_BYTES };
  const body = { name, kind, image_file, ...how, ...(command && { command }), ...(isolation && { isolation }) };
  const prepared = await api.call<{ build: string; image_presigned_requests: UploadPart[] }>(
    'POST',
    `${path}/prepare`,
    { body },
  );
  const tags = { [DIGEST_TAG]: digest, [CONTENT_TAG]: content_digest };
  await api.call('PATCH', `${path}/${prepared.build}/tags`, { body: { tags } });
  return { build_id: prepared.build, parts: prepared.image_presigned_requests };
}

/** Uploads a site, or the parts of it that the service does not have. Returns its id. */
export async function sendSite(session: Session, scope: Scope, directory: string): Promise<string> {
  const { api, output } = session;
  const listed_files = listFiles(directory);
  sayLeftOut(session, listed_files);
  const files = await digestFiles(listed_files.files);
  const digest = digestSite(files);
  const listed = await listSites(session, scope, digest);
  const known = listed.find(({ complete }) => complete);
  if (known) {
    output.say('site     the same as before: not sent again');
    return known.site_id;
  }
  const [unfinished] = listed;
  const { site_id, upload_id, parts } = unfinished
    ? { ...unfinished, parts: await findMissing(api, { game_id: scope.game.game_id, upload_id: unfinished.upload_id }) }
    : await prepareSite(session, scope, { files, digest });
  const files_by_path = new Map(files.map(({ path, file }) => [path, file]));
  const total_bytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const contentOf = (path: string) => Bun.file(files_by_path.get(path) ?? '');
  const isComplete = async () => (await listSites(session, scope, digest)).some(({ complete }) => complete);
  await sendParts(session, { label: 'site    ', parts, total_bytes, contentOf, isComplete });
  await showWhile('site     the service checks it', () => completeUpload(session, `/cloud/uploads/${upload_id}`));
  const new_count = new Set(parts.map(({ path }) => path)).size;
  output.say(
    `site     ${files.length} ${files.length === 1 ? 'file' : 'files'}, ${new_count} new, ${sizeOf(total_bytes, parts)}`,
  );
  return site_id;
}

async function prepareSite(
  { api }: Session,
  scope: Scope,
  { files, digest }: { files: SiteFile[]; digest: string },
): Promise<{ site_id: string; upload_id: string; parts: UploadPart[] }> {
  const body = {
    display_name: `${new Date().toISOString().slice(0, 19)} ${digest}`,
    files: files.map(({ path, bytes, sha256 }) => ({ path, content_length: bytes, sha256 })),
  };
  const { site_id, upload_id, presigned_requests } = await api.call<{
    site_id: string;
    upload_id: string;
    presigned_requests: UploadPart[];
  }>('POST', sitesOf(scope), { body });
  return { site_id, upload_id, parts: presigned_requests };
}

/** Returns the size of an upload in words, with how much of it was sent now if the rest was there already. */
function sizeOf(total_bytes: number, sent: UploadPart[]): string {
  const sent_bytes = sent.reduce((sum, { content_length }) => sum + content_length, 0);
  const rest = sent_bytes < total_bytes ? ` (${showBytes(sent_bytes)} of it sent now, the rest was there)` : '';
  return `${showBytes(total_bytes)}${rest}`;
}

async function digestContent(content: Blob): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256');
  for await (const chunk of content.stream()) hasher.update(chunk);
  return hasher.digest('hex');
}

/** A file of a site, with the digest of its content. */
type SiteFile = ProjectFile & { sha256: string };

async function digestFiles(files: ProjectFile[]): Promise<SiteFile[]> {
  return await showWhile('site     reading its files', async () => {
    const digested: SiteFile[] = [];
    for (const one of files) digested.push({ ...one, sha256: await digestContent(Bun.file(one.file)) });
    return digested;
  });
}

/** Returns a digest of a site's files. The site's name ends with it. */
function digestSite(files: SiteFile[]): string {
  const hasher = new Bun.CryptoHasher('sha256');
  for (const { path, bytes, sha256 } of files) hasher.update(`${JSON.stringify(path)} ${bytes} ${sha256}\n`);
  return hasher.digest('hex').slice(0, SITE_DIGEST_LENGTH);
}

/** Says what a script imports, and which files of a directory were left out. */
export function sayContent(session: Session, { path }: Build, { sources = [], ...content }: ServerPackage): void {
  const [, ...imported] = sources;
  const what = imported.length === 1 ? 'a file' : `${imported.length} files`;
  if (imported.length > 0) session.output.say(`bundle   ${basename(path)} and ${what} that it imports`);
  sayLeftOut(session, content);
}

/** Says which files were left out because they usually hold secrets, or cannot be read. */
export function sayLeftOut(
  { output }: Session,
  { secrets, unreadable }: Pick<DeployedFiles, 'secrets' | 'unreadable'>,
): void {
  for (const sentence of [describeSecrets(secrets), describeUnreadable(unreadable)]) {
    if (sentence !== undefined) output.say(sentence);
  }
}

function buildsOf({ game, namespace }: Scope): string {
  return `/games/${game.game_id}/environments/${namespace.namespace_id}/builds`;
}

function sitesOf({ game }: Scope): string {
  return `/cloud/games/${game.game_id}/cdn/sites`;
}

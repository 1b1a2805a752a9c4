import { effect, signal } from '@preact/signals';
import { untilComplete } from '../../shared/upload-completion.ts';
import { get, patch, post } from '../data/api.ts';
import { Refused, Unreachable } from '../data/request.ts';
import { state } from '../data/session.ts';
import { type Plan, packFolder } from './package.ts';
import { type Part, pause, sendParts } from './parts.ts';

const BUILDS = '/cloud/games/{game_id}/builds';
const PREPARE = '/games/{game_id}/environments/{environment_id}/builds/prepare';
const TAGS = '/games/{game_id}/environments/{environment_id}/builds/{build_id}/tags';
const COMPLETE = '/games/{game_id}/environments/{environment_id}/builds/{build_id}/complete';
/** An unfinished upload may have been begun for another namespace, in which only the upload itself can be completed. */
const COMPLETE_UPLOAD = '/cloud/uploads/{upload_id}/complete';
const MISSING = '/cloud/games/{game_id}/uploads/{upload_id}/requests';
/** An interrupted upload sends whole parts again. */
const PART_BYTES = 8 * 1024 ** 2;
/** The tag by which an interrupted upload is found. The command line has digests of another form, so it finds its own. */
const CONTENT_TAG = 'muster-content';
/** Refusals of a completion that another request goes on with, such as one that lost its connection. */
const PENDING = ['UPLOAD_BUSY', 'API_REQUEST_TIMEOUT'];

/** What an upload does, and how far it is. */
export type Progress =
  | { is: 'packing' | 'reading' | 'sending'; done: number; total: number }
  | { is: 'checking' }
  // An upload that goes on keeps the name that it was begun with.
  | { is: 'done'; build_id: string; name: string; was_known: boolean }
  | { is: 'failed'; message: string };

/** A game server to upload, and how it is run. */
export interface UploadRequest {
  environment: { game_id: string; environment_id: string };
  plan: Plan;
  name: string;
  /** The program and its first arguments; empty for a script. */
  command: string[];
}

/** The upload of this page; undefined before the first one. It goes on while the user looks at other pages. */
export const latest = signal<{ request: UploadRequest; progress: Progress } | undefined>(undefined);

let stopping = new AbortController();

/** Returns whether an upload still packs, sends or waits. */
export function isRunning({ is }: Progress): boolean {
  return is !== 'done' && is !== 'failed';
}

// The browser asks before it closes the page.
addEventListener('beforeunload', (event) => {
  if (latest.value && isRunning(latest.value.progress)) event.preventDefault();
});

/** Ends the upload. The service keeps what has arrived for a day, so that the same upload can go on. */
export function stopUpload(): void {
  stopping.abort();
  latest.value = undefined;
}

// It would go on as the next bearer of the page.
effect(() => {
  if (state.value.is !== 'in') stopUpload();
});

/** Uploads a game server: packs it, sends what is missing of it, and lets the service check it. */
export function startUpload(request: UploadRequest): void {
  stopUpload();
  stopping = new AbortController();
  const { signal: until } = stopping;
  const show = (progress: Progress) => {
    if (!until.aborted) latest.value = { request, progress };
  };
  upload(request, { show, until }).catch((error: unknown) => {
    show({ is: 'failed', message: error instanceof Error ? error.message : String(error) });
  });
}

interface Upload {
  show(progress: Progress): void;
  until: AbortSignal;
}

async function upload(request: UploadRequest, { show, until }: Upload): Promise<void> {
  const { environment, command, plan } = request;
  const content = await packContent(request, { show, until });
  const total = content.size;
  // The service runs a script by its name: the extension says whether it is TypeScript.
  const how = plan.kind === 'javascript' ? [plan.file.name, ...command] : command;
  const onRead = counting({ is: 'reading', total }, 0, show);
  const digest = await digestOf(content, how, { onRead, until });
  until.throwIfAborted();
  const known = digest === undefined ? undefined : await findKnown(environment.game_id, digest, until);
  until.throwIfAborted();
  const { build_id, name, upload_id, parts } = known ?? (await prepare(request, content, digest));
  const was_known = known?.is_complete === true;
  if (!was_known) {
    const missing = parts.reduce((sum, { content_length }) => sum + content_length, 0);
    const onSent = counting({ is: 'sending', total }, total - missing, show);
    await sendParts({ content, parts, onSent, signal: until });
    show({ is: 'checking' });
    await untilComplete({
      send: () =>
        upload_id === undefined
          ? post(COMPLETE, { ...environment, build_id }, {})
          : post(COMPLETE_UPLOAD, { upload_id }, {}),
      isPending: (error) => error instanceof Unreachable || (error instanceof Refused && PENDING.includes(error.code)),
      pause: (duration_ms) => pause(duration_ms, until),
    });
  }
  show({ is: 'done', build_id, name, was_known });
}

async function packContent({ plan, command }: UploadRequest, { show, until }: Upload): Promise<Blob> {
  if (plan.kind !== 'folder') return plan.file;
  const total = plan.folder.files.reduce((sum, { file }) => sum + file.size, 0);
  const program = command[0]?.replace(/^\.\//, '') ?? '';
  const onPacked = counting({ is: 'packing', total }, 0, show);
  return await packFolder(plan.folder, [...plan.programs, program], { onPacked, signal: until });
}

/** Shows a step, and returns the function that counts what it has done. */
function counting(
  step: { is: 'packing' | 'reading' | 'sending'; total: number },
  begin: number,
  show: Upload['show'],
): (bytes: number) => void {
  let done = begin;
  show({ ...step, done });
  return (bytes) => {
    done += bytes;
    show({ ...step, done });
  };
}

/**
 * Returns a digest of a content and how it is run: that of the digests of all parts, so that no file needs to be in memory.
 * Undefined where a browser has none: on a page without TLS that is not of this machine.
 */
async function digestOf(
  content: Blob,
  how: string[],
  { onRead, until }: { onRead(bytes: number): void; until: AbortSignal },
): Promise<string | undefined> {
  if (!isSecureContext) return undefined;
  const digests: BlobPart[] = [JSON.stringify(how)];
  for (let from = 0; from < content.size; from += PART_BYTES) {
    until.throwIfAborted();
    const part = await content.slice(from, from + PART_BYTES).arrayBuffer();
    digests.push(await crypto.subtle.digest('SHA-256', part));
    onRead(part.byteLength);
  }
  const all = await crypto.subtle.digest('SHA-256', await new Blob(digests).arrayBuffer());
  return `parts-${[...new Uint8Array(all)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

interface Prepared {
  build_id: string;
  name: string;
  /** Undefined for an upload that this page began. */
  upload_id?: string;
  /** What is missing. */
  parts: Part[];
}

/** Returns the build with the same content if the service has it, completely or in part after an interrupted upload. */
async function findKnown(
  game_id: string,
  digest: string,
  until: AbortSignal,
): Promise<(Prepared & { is_complete: boolean }) | undefined> {
  const { builds } = await get(BUILDS, { game_id }, {}, until);
  const same = builds.filter(({ tags }) => tags[CONTENT_TAG] === digest);
  const known = same.find(({ complete }) => complete) ?? same[0];
  if (!known) return undefined;
  const { build_id, display_name: name, upload_id, complete: is_complete } = known;
  if (is_complete) return { build_id, name, parts: [], is_complete };
  const { presigned_requests: parts } = await get(MISSING, { game_id, upload_id }, {}, until);
  return { build_id, name, upload_id, parts, is_complete };
}

async function prepare(
  { environment, plan, name, command }: UploadRequest,
  content: Blob,
  digest: string | undefined,
): Promise<Prepared> {
  const path = plan.kind === 'folder' ? 'server.tar.gz' : plan.file.name;
  const { build: build_id, image_presigned_requests: parts = [] } = await post(PREPARE, environment, {
    name,
    multipart_upload: true,
    part_length: PART_BYTES,
    kind: plan.kind === 'javascript' ? 'javascript' : 'archive',
    image_file: { path, content_length: content.size },
    ...(command.length > 0 && { command }),
  });
  if (digest !== undefined) {
    await patch(TAGS, { ...environment, build_id }, { tags: { [CONTENT_TAG]: digest } });
  }
  return { build_id, name, parts };
}

import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { showOutcome, useAction } from '../data/actions.ts';
import { post } from '../data/api.ts';
import { may_act } from '../data/bearer.ts';
import { shortId, useHref, useNamespace } from '../data/namespaces.ts';
import { goTo } from '../data/router.ts';
import { useUnmountSignal } from '../data/unmount-signal.ts';
import { hasSecrets, useLiveVersion, type Version } from '../data/versions.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Dialog, useDialog } from '../parts/dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { Notice } from '../parts/notice.tsx';
import { sizeOf } from '../parts/size.ts';
import { minuteOf } from '../parts/time.tsx';
import { type Chosen, readChosen, readDrop } from '../uploads/folder.ts';
import { type Plan, planUpload } from '../uploads/package.ts';
import { isRunning, latest, type Progress, startUpload, stopUpload, type UploadRequest } from '../uploads/upload.ts';

const PROJECT_FILE = 'muster.yaml';
const SECRETS_SHOWN_MAX = 5;
/** The longest name of a build that the service takes. */
const NAME_BYTES_MAX = 128;
const RESERVE = '/cloud/games/{game_id}/versions/reserve-name';
const VERSIONS = '/cloud/games/{game_id}/versions';

/** The upload of a game server, or the place to begin one. The files are packed here and sent in parts. */
export function Upload() {
  const form = useSignal<UploadFormValues | undefined>(undefined);
  const dialog = useDialog();
  const { scope } = useNamespace();
  const upload = latest.value;
  useIgnoredDrops();
  if (!may_act.value) return null;
  // The page does one upload at a time, also across games.
  const is_own = upload?.request.environment.game_id === scope.game_id;
  const shown = upload && (is_own || isRunning(upload.progress)) ? upload : undefined;
  const ask = (values: UploadFormValues) => {
    form.value = values;
    dialog.open();
  };
  return (
    <>
      {shown ? (
        <UploadProgress {...shown} onChange={() => ask(shown.request)} />
      ) : (
        <DropPlace onChosen={(plan) => ask(proposeFor(plan))} />
      )}
      <Dialog of={dialog} title="Upload a game server">
        {form.value && <UploadForm values={form.value} onDone={dialog.close} />}
      </Dialog>
    </>
  );
}

/** Lets nothing happen when a file is dropped beside the place for it: a browser would open it, and so leave the hub. */
function useIgnoredDrops(): void {
  useLayoutEffect(() => {
    const ignore = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes('Files')) event.preventDefault();
    };
    addEventListener('dragover', ignore);
    addEventListener('drop', ignore);
    return () => {
      removeEventListener('dragover', ignore);
      removeEventListener('drop', ignore);
    };
  }, []);
}

/** A place to drop a game server: a folder, an archive or a script. */
function DropPlace({ onChosen }: { onChosen(plan: Plan): void }) {
  const is_over = useSignal(false);
  const { is_busy, act } = useAction();
  const folder_input = useRef<HTMLInputElement>(null);
  const file_input = useRef<HTMLInputElement>(null);
  const choose = (read: () => Chosen | Promise<Chosen>) =>
    act(undefined, async () => onChosen(await planUpload(await read())));
  const drop = (event: DragEvent) => {
    event.preventDefault();
    is_over.value = false;
    const { dataTransfer } = event;
    if (dataTransfer) void choose(() => readDrop(dataTransfer));
  };
  const over = (event: DragEvent) => {
    event.preventDefault();
    is_over.value = true;
  };
  const take = ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    const files = [...(currentTarget.files ?? [])];
    // The same files can be chosen again.
    currentTarget.value = '';
    if (files.length > 0) void choose(() => readChosen(files));
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the buttons in it do the same without a mouse
    <div
      class={`drop card pad stack${is_over.value ? ' is-over' : ''}`}
      onDrop={drop}
      onDragOver={over}
      onDragLeave={() => {
        is_over.value = false;
      }}
    >
      <p role="status">
        {is_busy.value
          ? 'Reading the files …'
          : 'Drop the folder of your game server here, a tar archive of it, or one script.'}
      </p>
      <div class="row">
        <button type="button" onClick={() => folder_input.current?.click()}>
          Choose a folder
        </button>
        <button type="button" onClick={() => file_input.current?.click()}>
          Choose a file
        </button>
      </div>
      <input ref={folder_input} type="file" hidden aria-label="Folder of a game server" onChange={take} {...FOLDER} />
      <input ref={file_input} type="file" hidden aria-label="File of a game server" onChange={take} />
    </div>
  );
}

/** Lets a user choose a folder instead of a file. */
const FOLDER = { webkitdirectory: true } as Record<string, unknown>;

/** What the form of an upload shows first: what is proposed, or what was refused. */
type UploadFormValues = Omit<UploadRequest, 'environment'>;

/** Returns what is proposed for files. The name says of which folder or file, and when, so that it tells builds apart. */
function proposeFor(plan: Plan): UploadFormValues {
  const own_name = plan.kind === 'folder' ? plan.folder.name : plan.file.name;
  const ending = ` ${minuteOf(new Date())}`;
  const name = `${cutToBytes(own_name, NAME_BYTES_MAX - ending.length)}${ending}`;
  return { plan, name, command: plan.kind === 'folder' ? guessCommand(plan.programs) : [] };
}

function UploadForm({ values, onDone }: { values: UploadFormValues; onDone(): void }) {
  const { plan } = values;
  const { environment } = useNamespace();
  const name = useSignal(values.name);
  const command = useSignal(values.command.join(' '));
  const words = command.value.split(/\s+/).filter((word) => word !== '');
  const upload = (event: Event) => {
    event.preventDefault();
    startUpload({ environment, plan, name: name.value.trim(), command: plan.kind === 'javascript' ? [] : words });
    onDone();
  };
  return (
    <form class="stack" onSubmit={upload}>
      <p>{describe(plan)}</p>
      {plan.kind === 'folder' && plan.folder.secrets.length > 0 && (
        <p>
          Left out, because they usually hold secrets: {plan.folder.secrets.slice(0, SECRETS_SHOWN_MAX).join(', ')}
          {plan.folder.secrets.length > SECRETS_SHOWN_MAX &&
            ` and ${plan.folder.secrets.length - SECRETS_SHOWN_MAX} more`}
        </p>
      )}
      {plan.kind === 'folder' && plan.folder.files.some(({ path }) => path === PROJECT_FILE) && <WithProjectFile />}
      <TextField label="Name" value={name} problem={problemOfName(name.value)} is_required />
      {plan.kind !== 'javascript' && (
        <TextField
          label="Command: the program and its arguments, without quotes"
          value={command}
          placeholder="./server --fast"
          problem={problemOfCommand(words, plan)}
          is_required
        />
      )}
      <div class="row">
        <button type="submit" class="main">
          Upload
        </button>
        <button type="button" onClick={onDone}>
          Cancel
        </button>
      </div>
    </form>
  );
}

/** Says that the page does not read the file of a project, and what does. */
function WithProjectFile() {
  const { game, namespace } = useNamespace();
  return (
    <>
      <p>
        This page does not read {PROJECT_FILE}: it takes the command from below, and everything else from the live
        version. In the folder, this deploys what the file says:
      </p>
      <Copyable text={`muster deploy ${namespace.name_id} --game ${game.name_id} --url ${location.origin}`} />
    </>
  );
}

function describe(plan: Plan): string {
  if (plan.kind !== 'folder') return `${plan.file.name}, ${sizeOf(plan.file.size)}`;
  const { files } = plan.folder;
  const bytes = files.reduce((sum, { file }) => sum + file.size, 0);
  return `${files.length} ${files.length === 1 ? 'file' : 'files'} of ${plan.folder.name}, ${sizeOf(bytes)}`;
}

/** Returns the command for a folder with one program; nothing if it has none or several, or a name that has a blank. */
function guessCommand(programs: string[]): string[] {
  const own = programs.filter((path) => !path.includes('/'));
  const [only, ...others] = own.length > 0 ? own : programs;
  return only !== undefined && others.length === 0 && !/\s/.test(only) ? [`./${only}`] : [];
}

function problemOfName(name: string): string {
  if (name !== '' && name.trim() === '') return 'The name must not be blank.';
  return bytesOf(name.trim()) > NAME_BYTES_MAX
    ? `The name must have at most ${NAME_BYTES_MAX} bytes. It has ${bytesOf(name.trim())}.`
    : '';
}

/** Returns what the service would refuse after the whole upload. A name without a slash is a program of the machine. */
function problemOfCommand([program]: string[], plan: Plan): string {
  if (program === undefined) return 'The command must name a program.';
  if (plan.kind !== 'folder' || !program.includes('/') || program.startsWith('/')) return '';
  const path = withoutDots(program);
  const { files } = plan.folder;
  if (files.some((file) => file.path === path)) return '';
  if (files.some((file) => file.path.startsWith(`${path} `)))
    return 'A program whose name has a blank cannot be named here: rename it, or use "muster deploy".';
  return `The folder has no file ${program} that is uploaded.`;
}

/** Returns a path without "." and "..". */
function withoutDots(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.' && part !== '') parts.push(part);
  }
  return parts.join('/');
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Returns as many of the first characters of a text as have a number of bytes. */
function cutToBytes(text: string, max: number): string {
  const characters = [...text];
  while (bytesOf(characters.join('')) > max) characters.pop();
  return characters.join('');
}

const STEPS = { packing: 'Packing', reading: 'Reading', sending: 'Sending' } as const;

interface UploadProgressProps {
  request: UploadRequest;
  progress: Progress;
  /** Opens the form again, for another name or command. */
  onChange(): void;
}

/** How far an upload is, and what can be done with it. */
function UploadProgress({ request, progress, onChange }: UploadProgressProps) {
  return (
    <div class="card pad row uploading" role={progress.is === 'failed' ? 'alert' : 'status'}>
      <UploadStep request={request} progress={progress} onChange={onChange} />
      <button type="button" class="small" onClick={stopUpload}>
        {isRunning(progress) ? 'Stop' : 'Close'}
      </button>
    </div>
  );
}

function UploadStep({ request, progress, onChange }: UploadProgressProps) {
  const { name } = request;
  switch (progress.is) {
    case 'packing':
    case 'reading':
    case 'sending':
      return (
        <>
          <label class="upload">
            {STEPS[progress.is]} {name}
            <progress value={progress.done} max={Math.max(1, progress.total)} />
          </label>
          <span class="quiet">
            {sizeOf(progress.done)} of {sizeOf(progress.total)}
          </span>
        </>
      );
    case 'checking':
      return <span>The service checks {name} …</span>;
    case 'failed':
      return (
        <>
          <span class="bad">
            {name} was not uploaded: {progress.message}
          </span>
          <button type="button" class="small" onClick={() => startUpload(request)}>
            Continue
          </button>
          <button type="button" class="small" onClick={onChange}>
            Change
          </button>
        </>
      );
    case 'done':
      return (
        <>
          <span class="good">
            {progress.was_known
              ? `The service has this content already, as build ${shortId(progress.build_id)}.`
              : `${progress.name} is uploaded.`}
          </span>
          <NewVersion build_id={progress.build_id} />
        </>
      );
  }
}

/** Creates a version like the live one, with another build, and goes to it. */
function NewVersion({ build_id }: { build_id: string }) {
  const { scope } = useNamespace();
  const hrefTo = useHref();
  const live = useLiveVersion();
  const { is_busy, act } = useAction();
  const unmounted = useUnmountSignal();
  if (live === undefined) return <span class="quiet">Loading …</span>;
  if (live instanceof Error) return <Notice error={live} />;
  const config = withBuild(live.config, build_id);
  if (!config) {
    return (
      <span class="quiet">
        The live version does not use one build for all game modes. Deploy this one with "muster deploy".
      </span>
    );
  }
  if (hasSecrets(config)) {
    return (
      <span class="quiet">
        The live version has secrets, which this page cannot copy. Deploy this build with "muster deploy".
      </span>
    );
  }
  const make = () =>
    act(undefined, async () => {
      const { game_id } = scope;
      const { version_display_name } = await post(RESERVE, { game_id }, {});
      const { version_id } = await post(VERSIONS, { game_id }, { display_name: version_display_name, config });
      if (unmounted.aborted) {
        showOutcome({ done: `The version ${version_display_name} was created.` });
        return;
      }
      stopUpload();
      goTo(hrefTo({ page: 'versions', id: version_id }));
    });
  return (
    <button type="button" class="small main" disabled={is_busy.value} onClick={() => void make()}>
      New version with it
    </button>
  );
}

/** Returns a configuration with another build for all game modes; undefined if it names no build for all of them. */
function withBuild(config: Version['config'], build_id: string): Version['config'] | undefined {
  const { matchmaker } = config;
  const docker = matchmaker?.docker;
  // What a game mode says of its server replaces the general part, also its build.
  const has_own = Object.values(matchmaker?.game_modes ?? {}).some((mode) => mode.docker !== undefined);
  if (docker?.image_id === undefined || has_own) return undefined;
  return { ...config, matchmaker: { ...matchmaker, docker: { ...docker, image_id: build_id } } };
}

import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { showOutcome, useAction } from '../data/actions.ts';
import { post } from '../data/api.ts';
import { may_act } from '../data/bearer.ts';
import { shortId, useHref, useNamespace } from '../data/namespaces.ts';
import { goTo } from '../data/router.ts';
import { useUnmountSignal } from '../data/unmount-signal.ts';
import { useLiveVersion, type Version } from '../data/versions.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Dialog, useDialog } from '../parts/dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { Notice } from '../parts/notice.tsx';
import { sizeOf } from '../parts/size.ts';
import { type Chosen, readChosen, readDrop } from '../uploads/folder.ts';
import { type Plan, planUpload } from '../uploads/package.ts';
import { latest, type Progress, startUpload, stopUpload, type UploadRequest } from '../uploads/upload.ts';

const PROJECT_FILE = 'muster.yaml';
const SECRETS_SHOWN_MAX = 5;
const RESERVE = '/cloud/games/{game_id}/versions/reserve-name';
const VERSIONS = '/cloud/games/{game_id}/versions';

/** A place to drop a game server: a folder, an archive or a script. It is packed here and sent in parts. */
export function Upload() {
  const plan = useSignal<Plan | undefined>(undefined);
  const is_over = useSignal(false);
  const dialog = useDialog();
  const { scope } = useNamespace();
  const { is_busy, act } = useAction();
  const folder_input = useRef<HTMLInputElement>(null);
  const file_input = useRef<HTMLInputElement>(null);
  const upload = latest.value;
  if (!may_act.value) return null;
  // The page does one upload at a time, also across games.
  const is_own = upload?.request.environment.game_id === scope.game_id;
  if (upload && (is_own || isRunning(upload.progress))) return <UploadProgress {...upload} />;
  const choose = (read: () => Chosen | Promise<Chosen>) =>
    act(undefined, async () => {
      plan.value = await planUpload(await read());
      dialog.open();
    });
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
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the buttons in it do the same without a mouse */}
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
      <Dialog of={dialog} title="Upload a game server">
        {plan.value && <UploadForm plan={plan.value} onDone={dialog.close} />}
      </Dialog>
    </>
  );
}

/** Lets a user choose a folder instead of a file. */
const FOLDER = { webkitdirectory: true } as Record<string, unknown>;

function UploadForm({ plan, onDone }: { plan: Plan; onDone(): void }) {
  const { environment } = useNamespace();
  const own_name = plan.kind === 'folder' ? plan.folder.name : plan.file.name;
  const name = useSignal(`${own_name} ${new Date().toISOString().slice(0, 16).replace('T', ' ')}`);
  const command = useSignal(plan.kind === 'folder' ? guessCommand(plan.programs) : '');
  const upload = (event: Event) => {
    event.preventDefault();
    const words = plan.kind === 'javascript' ? [] : command.value.trim().split(/\s+/);
    startUpload({ environment, plan, name: name.value.trim(), command: words });
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
      <TextField label="Name" value={name} is_required />
      {plan.kind !== 'javascript' && (
        <TextField
          label="Command: the program and its arguments, without quotes"
          value={command}
          placeholder="./server --fast"
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

/** Returns the command for a folder with one program; an empty text if it has none or several. */
function guessCommand(programs: string[]): string {
  const own = programs.filter((path) => !path.includes('/'));
  const [only, ...others] = own.length > 0 ? own : programs;
  return only !== undefined && others.length === 0 ? `./${only}` : '';
}

const STEPS = { packing: 'Packing', reading: 'Reading', sending: 'Sending' } as const;

const isRunning = ({ is }: Progress) => is !== 'done' && is !== 'failed';

/** How far an upload is, and what can be done with it. */
function UploadProgress({ request, progress }: { request: UploadRequest; progress: Progress }) {
  return (
    <div class="card pad row" role={progress.is === 'failed' ? 'alert' : 'status'}>
      <UploadStep request={request} progress={progress} />
      <button type="button" class="small" onClick={stopUpload}>
        {isRunning(progress) ? 'Stop' : 'Close'}
      </button>
    </div>
  );
}

function UploadStep({ request, progress }: { request: UploadRequest; progress: Progress }) {
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
        </>
      );
    case 'done':
      return (
        <>
          <span class="good">
            {progress.was_known
              ? `The service has this content already, as build ${shortId(progress.build_id)}.`
              : `${name} is uploaded.`}
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

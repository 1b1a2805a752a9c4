import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { readSocketLabels } from '../../shared/ports.ts';
import type { BotsReport } from '../bots/protocol.ts';
import { useAction } from '../data/actions.ts';
import { bearer, may_act } from '../data/bearer.ts';
import { are_running, forgetBots, report, startBots, stopBots } from '../data/bots.ts';
import { BOT_HINTS } from '../data/hints.ts';
import { shortId, useHref, useNamespace } from '../data/namespaces.ts';
import { tokenFor } from '../data/players.ts';
import { useUnmountSignal } from '../data/unmount-signal.ts';
import { gameModesOf, useGameMode, useLiveVersion, type Version } from '../data/versions.ts';
import { useTitle } from '../data/watched.ts';
import { Field, TextField } from '../parts/fields.tsx';
import { Figures } from '../parts/figures.tsx';
import { NotFoundPage } from '../parts/not-found.tsx';
import { Notice } from '../parts/notice.tsx';
import { Section } from '../parts/section.tsx';

/** The most bots that one browser lets play at once. */
const BOTS_MAX = 1_000;
/** The most players of one find. */
const PARTY_MAX = 256;

/** Bots that play in the namespace, from this browser. */
export function TryPage() {
  const { game, namespace } = useNamespace();
  const version = useLiveVersion();
  useTitle(`Try it · ${namespace.name_id} · ${game.display_name}`);
  const unmounted = useUnmountSignal();
  useEffect(() => forgetBots, []);
  if (version === undefined || bearer.value === undefined) return <p class="quiet">Loading …</p>;
  if (!may_act.value) return <NotFoundPage />;
  if (version instanceof Error) return <Notice error={version} />;
  return (
    <>
      <div class="head">
        <h1>Try it</h1>
        <p class="quiet">Bots find seats, connect to the game server by WebSocket, stay for some seconds, and leave.</p>
      </div>
      {Object.keys(gameModesOf(version)).length === 0 ? (
        <p class="card pad">The live version has no game mode yet.</p>
      ) : (
        <BotsForm version={version} unmounted={unmounted} />
      )}
      {report.value && <Report of={report.value} />}
    </>
  );
}

function BotsForm({ version, unmounted }: { version: Version; unmounted: AbortSignal }) {
  const { game, scope } = useNamespace();
  const modes = gameModesOf(version);
  const mode = useGameMode(modes);
  const region = useSignal('');
  const count = useSignal('10');
  const party = useSignal('1');
  const tags = useSignal('');
  const { is_busy, act } = useAction();
  const is_taggable = modes[mode.value]?.taggable === true;
  const socket_labels = readSocketLabels(version.config.matchmaker, mode.value);
  const start = (event: Event) => {
    event.preventDefault();
    void act(undefined, async () => {
      const find = {
        game_modes: [mode.value],
        ...(region.value !== '' && { regions: [region.value] }),
        ...(Number(party.value) > 1 && { players: Number(party.value) }),
        ...(is_taggable && tags.value.trim() !== '' && { tags: readTags(tags.value) }),
      };
      const task = { count: Number(count.value), find, socket_labels };
      const token = await tokenFor(scope);
      if (!unmounted.aborted) startBots({ ...task, token });
    });
  };
  const regions = game.available_regions.map((one): [string, string] => [one.region_name_id, one.region_display_name]);
  return (
    <>
      <form class="row filters" onSubmit={start}>
        <TextField label="Bots" value={count} max={BOTS_MAX} is_required />
        <Field label="Game mode" value={mode} options={Object.keys(modes).map((name) => [name, name])} />
        <Field label="Region" value={region} options={[['', 'the best one'], ...regions]} />
        <TextField label="Players of a party" value={party} max={PARTY_MAX} is_required />
        {is_taggable && <TextField label="Tags" value={tags} placeholder="map=ice mode=fast" />}
        {are_running.value ? (
          // A node of its own: a click on one that becomes "Start" meanwhile would submit the form.
          <button key="stop" type="button" class="danger" onClick={stopBots}>
            Stop
          </button>
        ) : (
          <button key="start" type="submit" class="main" disabled={is_busy.value}>
            Start
          </button>
        )}
      </form>
      {socket_labels.length === 0 && (
        <p class="notice" role="alert">
          No port of the game mode "{mode.value}" takes a WebSocket, for which its protocol must be http or https. Bots
          get seats in it, but do not connect.
        </p>
      )}
    </>
  );
}

/** Reads "name=value name=value". */
function readTags(text: string): Record<string, string> {
  const pairs = text.trim().split(/\s+/);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return [name, value.join('=')];
    }),
  );
}

function Report({ of }: { of: BotsReport }) {
  const {
    seats,
    waiting,
    playing,
    connected,
    without_port,
    without_tls,
    only_seated,
    p50_ms,
    p95_ms,
    refused,
    unreached,
    lobbies,
  } = of;
  const ms = (value: number | undefined) => (value === undefined ? '–' : `${Math.round(value)} ms`);
  const refusals = Object.entries(refused).sort(([, one], [, other]) => other.count - one.count);
  const figures: [string, string | number][] = [
    ['seats found', seats],
    ['find, p50', ms(p50_ms)],
    ['find, p95', ms(p95_ms)],
    ['waiting', waiting],
    ['playing', playing],
    ['only seated', only_seated],
    ['connections so far', connected],
  ];
  return (
    <>
      <Figures of={figures} is_card />
      {without_port > 0 && <p>Seats without a port for WebSockets, where bots only waited: {without_port}</p>}
      {without_tls > 0 && (
        <p>Seats at ports without TLS, which a browser does not connect to from a page over https: {without_tls}</p>
      )}
      {refusals.length > 0 && <Refusals of={refusals} />}
      {unreached.length > 0 && <Lobbies title="Game servers that did not let a bot in" ids={unreached} />}
      {lobbies.length > 0 && <Lobbies title="Latest lobbies" ids={lobbies} />}
    </>
  );
}

function Refusals({ of }: { of: [code: string, one: { count: number; ray_id: string | undefined }][] }) {
  const hrefTo = useHref();
  return (
    <Section title="Refused">
      <ul class="card pad stack">
        {of.map(([code, { count, ray_id }]) => (
          <li key={code} class="row">
            <strong>{count} ×</strong> {code}
            {ray_id !== undefined && <a href={hrefTo({ page: 'why', id: ray_id })}>Why</a>}
            {BOT_HINTS[code] !== undefined && <span class="quiet">{BOT_HINTS[code]}</span>}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Lobbies({ title, ids }: { title: string; ids: string[] }) {
  const hrefTo = useHref();
  return (
    <Section title={title}>
      <p class="row">
        {[...new Set(ids)].map((id) => (
          <a key={id} class="mono" href={hrefTo({ page: 'lobbies', id })}>
            {shortId(id)}
          </a>
        ))}
      </p>
    </Section>
  );
}

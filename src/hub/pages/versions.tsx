import { useSignal } from '@preact/signals';
import { may_act } from '../data/bearer.ts';
import { type Deployment, deploy, useDeployments, versionBefore } from '../data/deployments.ts';
import { LOBBIES, SUMMARY_ONLY } from '../data/lobbies.ts';
import { type Game, useHref, useNamespace, versionName } from '../data/namespaces.ts';
import { useRows } from '../data/rows.ts';
import { useTitle } from '../data/watched.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Copyable } from '../parts/copyable.tsx';
import { Consequences, DeployButton } from '../parts/deploy-button.tsx';
import { Notice } from '../parts/notice.tsx';
import { Rows } from '../parts/rows.tsx';
import { Section } from '../parts/section.tsx';
import { Age, momentOf } from '../parts/time.tsx';
import { Builds } from './builds.tsx';
import { Upload } from './upload.tsx';

/** The latest versions, which leave the history and the builds in reach. */
const SHOWN_FIRST = 20;
const ROW_HEIGHTS = { wide: 50, narrow: 76 };

type VersionSummary = Game['versions'][number];

/** The versions of the game: which is live where, and what this namespace had before. */
export function VersionsPage() {
  const { game, namespace } = useNamespace();
  const { deployments, error } = useDeployments({ game, namespace });
  const is_whole = useSignal(false);
  useTitle(`Versions · ${namespace.name_id} · ${game.display_name}`);
  const versions = game.versions.toSorted((one, other) => (one.create_ts < other.create_ts ? 1 : -1));
  const shown = is_whole.value ? versions : versions.slice(0, SHOWN_FIRST);
  const before = versionBefore({ game, namespace }, deployments);
  return (
    <>
      <div class="head">
        <h1>{versionName(game, namespace.version_id)}</h1>
        <span class="badge good">live in {namespace.name_id}</span>
        <div class="end row">{before !== undefined && may_act.value && <RollBack to={before} />}</div>
      </div>
      <OldLobbies />
      <Rows items={shown} keyOf={({ version_id }) => version_id} heights={ROW_HEIGHTS} label="Versions">
        {(version) => <VersionRow version={version} />}
      </Rows>
      {shown.length < versions.length && (
        <div class="row">
          <button
            type="button"
            onClick={() => {
              is_whole.value = true;
            }}
          >
            All {versions.length} versions
          </button>
        </div>
      )}
      {error && <Notice error={error} />}
      <Deployments of={deployments} />
      <Section title="Builds">
        <Upload />
        <Builds />
      </Section>
      <p class="quiet">In the folder of the game, this creates a version and deploys it here:</p>
      <Copyable text={`muster deploy ${namespace.name_id} --game ${game.name_id} --url ${location.origin}`} />
    </>
  );
}

function VersionRow({ version: { version_id, display_name, create_ts } }: { version: VersionSummary }) {
  const { game, namespace } = useNamespace();
  const hrefTo = useHref();
  const live_in = game.namespaces.filter((one) => one.version_id === version_id);
  const href = hrefTo({ page: 'versions', id: version_id });
  return (
    <div class="version">
      <a class="cut" href={href}>
        {display_name}
      </a>
      <span class="badges">
        {live_in.map(({ name_id }) => (
          <span key={name_id} class={`badge ${name_id === namespace.name_id ? 'good' : 'quiet'}`}>
            {name_id}
          </span>
        ))}
      </span>
      <span class="quiet age">
        <Age of={create_ts} />
      </span>
      <DeployButton version_id={version_id} />
    </div>
  );
}

function RollBack({ to }: { to: string }) {
  const { game, namespace } = useNamespace();
  return (
    <Confirm
      label="Roll back"
      question={`Roll ${namespace.name_id} back to ${versionName(game, to)}?`}
      onConfirm={() => void deploy({ game, namespace }, to)}
    >
      <Consequences version_id={to} />
    </Confirm>
  );
}

/** How many lobbies still run on a version other than the live one. */
function OldLobbies() {
  const { namespace, scope } = useNamespace();
  const hrefTo = useHref();
  const watched = useRows(LOBBIES, scope, SUMMARY_ONLY).value;
  const versions = watched.is === 'here' ? Object.entries(watched.body.summary.versions) : [];
  const old = versions.flatMap(([version_id, total]) => (version_id === namespace.version_id ? [] : [total]));
  const lobbies = old.reduce((sum, total) => sum + total.lobbies, 0);
  const players = old.reduce((sum, total) => sum + total.players, 0);
  if (lobbies === 0) return null;
  return (
    <p>
      <a href={hrefTo({}, { status: 'old version' })}>
        {lobbies} {lobbies === 1 ? 'lobby' : 'lobbies'}
      </a>{' '}
      on an old version, with {players} {players === 1 ? 'player' : 'players'}.{' '}
      {lobbies === 1 ? 'It goes on until it ends.' : 'They go on until they end.'}
    </p>
  );
}

function Deployments({ of }: { of: Deployment[] }) {
  const { game } = useNamespace();
  if (of.length === 0) return null;
  return (
    <section class="stack" aria-label="History">
      <h2>What was live here</h2>
      <ol class="card pad">
        {of.map(({ version_id, deploy_ts }) => (
          <li key={deploy_ts} class="row">
            <time dateTime={deploy_ts}>{momentOf(deploy_ts)}</time> {versionName(game, version_id)}
          </li>
        ))}
      </ol>
    </section>
  );
}

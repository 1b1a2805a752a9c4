import { LOBBIES, SUMMARY_ONLY } from '../data/lobbies.ts';
import { type Game, type NamespaceOfGame, scopeOf, versionName } from '../data/namespaces.ts';
import { hrefOf } from '../data/router.ts';
import { useRows } from '../data/rows.ts';
import { useTitle, useWatched } from '../data/watched.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Figures } from '../parts/figures.tsx';
import { WithGame } from './with-namespace.tsx';

const PAST_LOBBIES = '/cloud/games/{game_id}/namespaces/{namespace_id}/logs/lobbies';
/**
 * How many namespaces are watched: the first ones. Each takes two watches, and two tabs of a person, or of one address,
 * have to stay within 128, the default of MUSTER_WATCHERS_PER_CALLER_MAX.
 */
const WATCHED_MAX = 30;

/** A game: its namespaces, what is live in each, and who plays there. */
export function GamePage({ name }: { name: string }) {
  return <WithGame name={name}>{(game) => <Namespaces game={game} />}</WithGame>;
}

function Namespaces({ game }: { game: Game }) {
  useTitle(game.display_name);
  const is_new = game.versions.length <= 1;
  return (
    <>
      <div class="head">
        <h1>{game.display_name}</h1>
        <Figures
          of={[
            ['players now', game.total_player_count],
            ['versions', game.versions.length],
          ]}
        />
      </div>
      <ul class="cards">
        {game.namespaces.map((namespace, index) => (
          <NamespaceCard
            key={namespace.namespace_id}
            game={game}
            namespace={namespace}
            is_watched={index < WATCHED_MAX}
          />
        ))}
      </ul>
      {game.namespaces.length > WATCHED_MAX && (
        <p class="quiet">
          Only the first {WATCHED_MAX} namespaces show their players here. The others have them on their pages.
        </p>
      )}
      {is_new && (
        <div class="card pad stack">
          <h2>Nothing is deployed yet</h2>
          <p>In the folder of the game, this uploads it, checks it and puts it live:</p>
          <Copyable text={`muster deploy prod --game ${game.name_id} --url ${location.origin}`} />
        </div>
      )}
    </>
  );
}

function NamespaceCard({ game, namespace, is_watched }: NamespaceOfGame & { is_watched: boolean }) {
  const { name_id, display_name, version_id } = namespace;
  return (
    <li class="card pad stack">
      <h2>
        <a href={hrefOf({ game: game.name_id, namespace: name_id })}>{display_name}</a>
      </h2>
      <p class="quiet">
        {name_id} · version {versionName(game, version_id)}
      </p>
      {is_watched && <Players namespace={namespace} game={game} />}
      {is_watched && <Failures namespace={namespace} game={game} />}
    </li>
  );
}

function Players({ game, namespace }: NamespaceOfGame) {
  const watched = useRows(LOBBIES, scopeOf({ game, namespace }), SUMMARY_ONLY).value;
  if (watched.is === 'refused') return <p class="bad">{watched.error.message}</p>;
  if (watched.is === 'waiting') return <p class="quiet">…</p>;
  const { lobbies, players } = watched.body.summary;
  return (
    <p>
      <strong>{players}</strong> {players === 1 ? 'player' : 'players'} in <strong>{lobbies}</strong>{' '}
      {lobbies === 1 ? 'lobby' : 'lobbies'}
    </p>
  );
}

/** How many of the latest lobbies failed: their server crashed, or did not become ready. */
function Failures({ game, namespace }: NamespaceOfGame) {
  const past = useWatched(PAST_LOBBIES, scopeOf({ game, namespace })).value;
  const lobbies = past.is === 'here' ? past.body.lobbies : [];
  const failed = lobbies.filter(({ status }) => status.stopped?.failed === true);
  const [latest] = failed;
  if (!latest) return null;
  const address = { game: game.name_id, namespace: namespace.name_id };
  return (
    <p class="bad">
      {failed.length} of the latest {lobbies.length} lobbies failed.{' '}
      <a href={hrefOf({ ...address, page: 'lobbies', id: latest.lobby_id })}>The last one</a>
    </p>
  );
}

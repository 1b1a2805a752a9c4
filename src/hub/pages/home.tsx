import type { Answer } from '../data/api.ts';
import { bearer, is_administrator } from '../data/bearer.ts';
import { hrefOf } from '../data/router.ts';
import { useTitle, useWatched } from '../data/watched.ts';
import { Attention } from '../parts/attention.tsx';
import { Copyable } from '../parts/copyable.tsx';
import { Figures } from '../parts/figures.tsx';
import { Notice } from '../parts/notice.tsx';
import { Invitation } from './invitation.tsx';

type Game = Answer<'/cloud/games', 'get'>['games'][number];

/** All games of the caller, with their players now. */
export function HomePage() {
  const watched = useWatched('/cloud/games', {}).value;
  useTitle('Games');
  if (watched.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (watched.is === 'refused') return <Notice error={watched.error} />;
  const { games, groups } = watched.body;
  const sorted = games.toSorted((one, other) => other.total_player_count - one.total_player_count);
  const players = games.reduce((sum, { total_player_count }) => sum + total_player_count, 0);
  return (
    <>
      <div class="head">
        <h1>Games</h1>
        <Figures of={[['players now', players]]} />
      </div>
      <Invitation />
      {games.length === 0 ? <NoGames is_member={groups.length > 0} /> : <GameCards games={sorted} />}
      <Attention games={sorted} />
    </>
  );
}

function GameCards({ games }: { games: Game[] }) {
  return (
    <ul class="cards">
      {games.map(({ game_id, name_id, display_name, developer, total_player_count }) => (
        <li key={game_id} class="card pad stack">
          <h2>
            <a href={hrefOf({ game: name_id })}>{display_name}</a>
          </h2>
          <p class="quiet">{developer.display_name}</p>
          <p>
            <strong>{total_player_count}</strong> {total_player_count === 1 ? 'player' : 'players'} now
          </p>
        </li>
      ))}
    </ul>
  );
}

/** How to get a game: by commands, for those who may create one. */
function NoGames({ is_member }: { is_member: boolean }) {
  // Who looks may not be known yet.
  if (bearer.value === undefined) return null;
  const may_create = is_member || is_administrator.value;
  return (
    <div class="card pad stack">
      <h2>You have no game yet</h2>
      {may_create ? (
        <>
          <p>
            In the folder of a game, log in with your own token: paste it, then press Enter and ctrl-D. The second
            command writes muster.yaml and puts the game live:
          </p>
          <Copyable text={`muster login ${location.origin} --token -`} />
          <Copyable text="muster init && muster deploy" />
        </>
      ) : (
        <p>You are in no group yet. Ask a member of one for an invitation.</p>
      )}
    </div>
  );
}

import { shortId, useHref } from '../data/namespaces.ts';

/** Leads to the page of a lobby. */
export function LobbyLink({ lobby_id }: { lobby_id: string }) {
  const hrefTo = useHref();
  return (
    <>
      lobby{' '}
      <a class="mono" href={hrefTo({ page: 'lobbies', id: lobby_id })}>
        {shortId(lobby_id)}
      </a>
    </>
  );
}

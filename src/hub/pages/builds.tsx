import { useSignal } from '@preact/signals';
import type { Answer } from '../data/api.ts';
import { shortId, useNamespace } from '../data/namespaces.ts';
import { useWatched } from '../data/watched.ts';
import { Notice } from '../parts/notice.tsx';
import { sizeOf } from '../parts/size.ts';
import { Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';

const BUILDS = '/cloud/games/{game_id}/builds';
/** The latest builds, which leave what is below in reach. */
const SHOWN_FIRST = 50;

type Build = Answer<typeof BUILDS, 'get'>['builds'][number];

/** The uploaded game servers of the game, newest first. */
export function Builds() {
  const { scope } = useNamespace();
  const is_whole = useSignal(false);
  const watched = useWatched(BUILDS, { game_id: scope.game_id }).value;
  if (watched.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (watched.is === 'refused') return <Notice error={watched.error} />;
  const { builds } = watched.body;
  if (builds.length === 0) return <p class="quiet">No builds yet.</p>;
  const shown = is_whole.value ? builds : builds.slice(0, SHOWN_FIRST);
  return (
    <>
      <Table heads={['Build', 'Name', 'Size', 'Age', 'Status']}>
        {shown.map((build) => (
          <BuildRow key={build.build_id} build={build} />
        ))}
      </Table>
      {shown.length < builds.length && (
        <div class="row">
          <button
            type="button"
            onClick={() => {
              is_whole.value = true;
            }}
          >
            All {builds.length} builds
          </button>
        </div>
      )}
    </>
  );
}

function BuildRow({ build: { build_id, display_name, content_length, create_ts, complete } }: { build: Build }) {
  return (
    <tr>
      <td class="mono">{shortId(build_id)}</td>
      <td>{display_name}</td>
      <td>{sizeOf(content_length)}</td>
      <td>
        <Age of={create_ts} />
      </td>
      <td>
        <span class={`badge ${complete ? 'good' : 'warn'}`}>{complete ? 'complete' : 'not complete'}</span>
      </td>
    </tr>
  );
}

import type { Answer } from '../../data/api.ts';
import { hrefOf } from '../../data/router.ts';
import { useWatched } from '../../data/watched.ts';
import { Polled } from '../../parts/polled.tsx';
import { Process } from '../../parts/process.tsx';
import { Section } from '../../parts/section.tsx';
import { sizeOf } from '../../parts/size.ts';
import { Table } from '../../parts/table.tsx';
import { Age, Until } from '../../parts/time.tsx';

const SERVICE = '/cloud/service';
const QUEUE = '/cloud/service/queue';
const REFRESH_MS = 5_000;
/** From this share of a limit on, its use is marked. */
const NEARLY = 0.9;

type Service = Answer<typeof SERVICE, 'get'>;
type Limit = Service['limits'][number];
type Loop = Service['loops'][number];
type WaitingNamespace = Answer<typeof QUEUE, 'get'>['namespaces'][number];

/** What the process uses of each of its limits. */
export function Limits() {
  return (
    <Section title="Limits">
      <Polled path={SERVICE} every_ms={REFRESH_MS}>
        {({ process, limits }) => (
          <>
            <Process of={process} />
            <ul class="card pad limits">
              {limits.map((limit) => (
                <LimitRow key={limit.name} limit={limit} />
              ))}
            </ul>
          </>
        )}
      </Polled>
    </Section>
  );
}

function LimitRow({ limit: { name, used, max } }: { limit: Limit }) {
  const write = name.endsWith('_bytes') ? sizeOf : (value: number) => value.toLocaleString();
  const text = name.replace('_bytes', '').replaceAll('_', ' ');
  return (
    <li>
      <span>{text}</span>
      {max === undefined ? (
        <span class="quiet">no limit</span>
      ) : (
        <meter aria-label={text} value={used} max={max} high={max * NEARLY} />
      )}
      <span class="whole">
        {write(used)} {max !== undefined && <span class="quiet">of {write(max)}</span>}
      </span>
    </li>
  );
}

/** The finds that wait for their turn. */
export function Queue() {
  return (
    <Section title="Queue">
      <Polled path={QUEUE} every_ms={REFRESH_MS}>
        {({ finds, namespaces }) =>
          finds === 0 ? <p class="card pad">No find waits for its turn.</p> : <QueueTable namespaces={namespaces} />
        }
      </Polled>
    </Section>
  );
}

/** A namespace is a link if its game is one of the administrator's own: others have no page. */
function QueueTable({ namespaces }: { namespaces: WaitingNamespace[] }) {
  const own = useWatched('/cloud/games', {}).value;
  const own_games = own.is === 'here' ? own.body.games.map(({ name_id }) => name_id) : [];
  return (
    <Table heads={['Namespace', 'Finds', 'Seats', 'Longest wait']}>
      {namespaces.map(({ namespace_id, game_name_id: game, namespace_name_id: namespace, ...one }) => (
        <tr key={namespace_id}>
          <td>
            {own_games.includes(game) ? (
              <a href={hrefOf({ game, namespace })}>{`${game} ${namespace}`}</a>
            ) : (
              <span>{`${game} ${namespace}`}</span>
            )}
          </td>
          <td>{one.finds}</td>
          <td>{one.seats}</td>
          <td>
            <Age of={one.waiting_since_ts} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** The background work of the process: failing loops first. */
export function Loops() {
  return (
    <Section title="Background work">
      <Polled path={SERVICE} every_ms={REFRESH_MS}>
        {({ process, loops }) => (
          <>
            <Process of={process} />
            <Table heads={['Loop', 'Last step', 'Took', 'Next step', 'Steps']}>
              {loops
                .toSorted((one, other) => other.failures - one.failures || one.name.localeCompare(other.name))
                // A process that has a cluster has some loops twice.
                .map((loop, index) => (
                  <LoopRow key={`${loop.name} ${index}`} loop={loop} />
                ))}
            </Table>
          </>
        )}
      </Polled>
    </Section>
  );
}

function LoopRow({ loop }: { loop: Loop }) {
  const { name, steps, last_step_ts, last_step_ms, next_step_ts, failures, last_failure } = loop;
  return (
    <tr>
      <td>
        <span class="whole">
          {name} {failures > 0 && <span class="badge bad">failed {failures} ×</span>}
        </span>
        {last_failure && (
          <div class={failures > 0 ? 'bad' : 'quiet'}>
            <Age of={last_failure.at_ts} /> ago: {last_failure.message}
          </div>
        )}
      </td>
      <td class="whole">
        {last_step_ts !== undefined && (
          <>
            <Age of={last_step_ts} /> ago
          </>
        )}
      </td>
      <td class="whole">{last_step_ms !== undefined && `${last_step_ms} ms`}</td>
      <td class="whole">{next_step_ts === undefined ? 'runs now' : <Until moment={next_step_ts} />}</td>
      <td>{steps}</td>
    </tr>
  );
}

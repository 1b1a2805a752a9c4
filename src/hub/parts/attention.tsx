import { Fragment } from 'preact';
import { HOUR_MS } from '../../shared/units.ts';
import type { Answer } from '../data/api.ts';
import { is_administrator } from '../data/bearer.ts';
import { COUNTERS, refusalsOf, stepsWithin } from '../data/counters.ts';
import { REFUSAL_PROBLEMS } from '../data/hints.ts';
import { type NamespaceOfGame, scopeOf } from '../data/namespaces.ts';
import { useReading } from '../data/reading.ts';
import { Refused } from '../data/request.ts';
import { hrefOf } from '../data/router.ts';
import { is_connected } from '../data/session.ts';
import { useWatched } from '../data/watched.ts';
import { now } from './time.tsx';

const CRASHES = '/cloud/games/{game_id}/namespaces/{namespace_id}/crashes';
const REFRESH_MS = 30_000;

type Finding = Pick<NonNullable<Answer<'/health/ready', 'get'>['warnings']>[number], 'message' | 'advice'>;
type Machine = Answer<'/cloud/machines', 'get'>['machines'][number];

/** How many games, and namespaces of each, are watched for problems: those with the most players, and their first ones. */
const WATCHED_MAX = { games: 6, namespaces: 4 };

/** What someone should look at: in the service, for administrators, and in games. Its styles hide it while it is empty. */
export function Attention({ games }: { games: { game_id: string }[] }) {
  return (
    <section class="stack attention" aria-label="Attention">
      <h2>Needs attention</h2>
      <ul class="card pad stack">
        {is_administrator.value && <ServiceFindings />}
        {games.slice(0, WATCHED_MAX.games).map(({ game_id }) => (
          <GameProblems key={game_id} game_id={game_id} />
        ))}
      </ul>
    </section>
  );
}

/** What the service says that its operator should correct, each with what to do about it, and machines that do not answer. */
function ServiceFindings() {
  const { answer, failure } = useReading('/health/ready', {}, { every_ms: REFRESH_MS });
  if (!answer.value && !failure.value) return null;
  const findings = failure.value ? reasonsOf(failure.value) : (answer.value?.warnings ?? []);
  return (
    <>
      {findings.map(({ message, advice }) => (
        <li key={message}>
          <span class="warn sentence">{message}.</span> {advice}
        </li>
      ))}
      <Machines />
      {findings.length === 0 && is_connected.value && <li class="good">The service is ready.</li>}
    </>
  );
}

/** Returns why the service is not ready; if its answer has no reasons, the error itself. */
function reasonsOf(error: Error): Finding[] {
  const { reasons } = ((error instanceof Refused && error.metadata) || {}) as { reasons?: Finding[] };
  return reasons ?? [{ message: error.message.replace(/\.$/, ''), advice: '' }];
}

function GameProblems({ game_id }: { game_id: string }) {
  const watched = useWatched('/cloud/games/{game_id}', { game_id }).value;
  if (watched.is !== 'here') return null;
  const { game } = watched.body;
  return (
    <>
      {game.namespaces.slice(0, WATCHED_MAX.namespaces).map((namespace) => (
        <Fragment key={namespace.namespace_id}>
          <Crashes game={game} namespace={namespace} />
          <RefusalProblems game={game} namespace={namespace} />
        </Fragment>
      ))}
    </>
  );
}

/** Requests for seats in a namespace that were refused within the last hour for reasons that someone can correct. */
function RefusalProblems({ game, namespace }: NamespaceOfGame) {
  const watched = useWatched(COUNTERS, scopeOf({ game, namespace }), { window: 'hour' }).value;
  if (watched.is !== 'here') return null;
  const address = { game: game.name_id, namespace: namespace.name_id, page: 'why' };
  return (
    <>
      {refusalsOf(stepsWithin(watched.body.steps, 'hour', now.value)).map(([code, count]) => {
        const problem = REFUSAL_PROBLEMS[code];
        return problem === undefined ? null : (
          <li key={code} class="warn">
            {game.display_name}, {namespace.name_id}: {count} {count === 1 ? 'request was' : 'requests were'} refused
            within the last hour, because {problem}. <a href={hrefOf(address, { code })}>Why</a>
          </li>
        );
      })}
    </>
  );
}

/** Game servers of a namespace that crashed within the last hour, by the way in which they ended. */
function Crashes({ game, namespace }: NamespaceOfGame) {
  const watched = useWatched(CRASHES, scopeOf({ game, namespace })).value;
  if (watched.is !== 'here') return null;
  const address = { game: game.name_id, namespace: namespace.name_id, page: 'servers' };
  return (
    <>
      {watched.body.crashes
        .filter(({ last_end_ts }) => now.value - Date.parse(last_end_ts) < HOUR_MS)
        .map(({ summary, count, last_server_id }) => (
          <li key={summary} class="warn">
            {game.display_name}, {namespace.name_id}: {count} {count === 1 ? 'crash' : 'crashes'} within the last hour.{' '}
            {summary} <a href={hrefOf({ ...address, id: last_server_id })}>Server</a>
          </li>
        ))}
    </>
  );
}

function Machines() {
  const { answer } = useReading('/cloud/machines', {}, { every_ms: REFRESH_MS });
  if (!answer.value) return null;
  const troubled = answer.value.machines.filter(({ state }) => state === 'late' || state === 'lost');
  return (
    <>
      {troubled.map((machine) => (
        <li key={machine.machine_id} class="warn">
          {describe(machine)} <a href="/hub/~operator">Machines</a>
        </li>
      ))}
    </>
  );
}

function describe({ host, state }: Machine): string {
  return state === 'lost' ? `The machine ${host} is lost.` : `The machine ${host} does not answer.`;
}

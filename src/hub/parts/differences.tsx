import { type Difference, differencesOf } from '../../shared/difference.ts';
import { hasSecrets, useVersion } from '../data/versions.ts';
import { Notice } from './notice.tsx';

interface DifferencesProps {
  game_id: string;
  /** Ids of versions. */
  before: string;
  after: string;
}

/** What differs between the configurations of two versions. */
export function Differences({ game_id, before, after }: DifferencesProps) {
  const [one, other] = [useVersion(game_id, before), useVersion(game_id, after)];
  if (one === undefined || other === undefined) return <p class="quiet">Comparing …</p>;
  if (one instanceof Error) return <Notice error={one} />;
  if (other instanceof Error) return <Notice error={other} />;
  const differences = differencesOf(one.config, other.config);
  if (differences.length === 0) {
    const has_secrets = hasSecrets(one.config) || hasSecrets(other.config);
    return (
      <p class="quiet">
        Their configurations are the same{has_secrets && ', apart from secrets, which are not shown'}.
      </p>
    );
  }
  return (
    <ul class="changes" aria-label="Changes">
      {differences.map((difference) => (
        <DifferenceRow key={difference.path} difference={difference} />
      ))}
    </ul>
  );
}

function DifferenceRow({ difference: { path, before, after } }: { difference: Difference }) {
  return (
    <li>
      <strong>{path}</strong>
      {before !== undefined && (
        <del>
          <span class="hidden">before: </span>
          {JSON.stringify(before)}
        </del>
      )}
      {after !== undefined && (
        <ins>
          <span class="hidden">after: </span>
          {JSON.stringify(after)}
        </ins>
      )}
    </li>
  );
}

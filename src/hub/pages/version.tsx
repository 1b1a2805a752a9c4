import { useNamespace, versionName } from '../data/namespaces.ts';
import { search } from '../data/router.ts';
import { useVersion } from '../data/versions.ts';
import { useTitle } from '../data/watched.ts';
import { DeployButton } from '../parts/deploy-button.tsx';
import { Differences } from '../parts/differences.tsx';
import { Choice } from '../parts/filters.tsx';
import { Json } from '../parts/json.tsx';
import { RefusedPage } from '../parts/refused.tsx';
import { Section } from '../parts/section.tsx';
import { Age } from '../parts/time.tsx';

/** A version: what differs from the live one or from another, and its whole configuration. */
export function VersionPage({ id }: { id: string }) {
  const { game, namespace } = useNamespace();
  const version = useVersion(game.game_id, id);
  const other = search.value.get('with') ?? namespace.version_id;
  useTitle(`${versionName(game, id)} · ${game.display_name}`);
  if (version === undefined) return <p class="quiet">Loading …</p>;
  if (version instanceof Error) return <RefusedPage error={version} what="version" />;
  const others = game.versions.filter(({ version_id }) => version_id !== id && version_id !== namespace.version_id);
  return (
    <>
      <div class="head">
        <h1>{version.display_name}</h1>
        <span class="quiet">
          created <Age of={version.create_ts} /> ago
        </span>
        <div class="end">
          <DeployButton version_id={id} />
        </div>
      </div>
      <section class="stack" aria-label="Difference">
        <div class="row filters">
          <Choice
            name="with"
            label="Compared with"
            options={others.map(({ version_id, display_name }) => [version_id, display_name])}
            none={`the live one of ${namespace.name_id}`}
          />
        </div>
        <div class="card pad">
          {other === id ? (
            <p class="quiet">This is the live one.</p>
          ) : (
            <Differences game_id={game.game_id} before={other} after={id} />
          )}
        </div>
      </section>
      <Section title="Configuration">
        <Json of={version.config} label="Configuration of the version" />
      </Section>
    </>
  );
}

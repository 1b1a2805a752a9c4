import { may_act } from '../../data/bearer.ts';
import { useNamespace } from '../../data/namespaces.ts';
import { useReading } from '../../data/reading.ts';
import { useTitle, useWatched } from '../../data/watched.ts';
import { Facts } from '../../parts/facts.tsx';
import { Members } from '../../parts/members.tsx';
import { Section } from '../../parts/section.tsx';
import { WhenRead } from '../../parts/when-read.tsx';
import { LimitsForm } from './limits.tsx';
import { ShareLinks, useShareLinks } from './share-links.tsx';
import { SiteSettings } from './site.tsx';
import { Tokens } from './tokens.tsx';
import { Trials } from './trials.tsx';

const NAMESPACE = '/cloud/games/{game_id}/namespaces/{namespace_id}';

/** The settings of a namespace, the tokens of its game, and the members of the game's group. */
export function SettingsPage() {
  const { game, namespace, scope } = useNamespace();
  const reading = useReading(NAMESPACE, scope);
  const share_links = useShareLinks();
  useTitle(`Settings · ${namespace.name_id} · ${game.display_name}`);
  return (
    <>
      <div class="head">
        <h1>Settings of {namespace.display_name}</h1>
      </div>
      <WhenRead of={reading}>
        {({ namespace: { config } }) => (
          <>
            <LimitsForm limits={config.matchmaker} onChange={reading.again} />
            <SiteSettings cdn={config.cdn} onChange={reading.again} />
          </>
        )}
      </WhenRead>
      {may_act.value && <Trials />}
      <Tokens onRevoke={share_links.again} />
      <ShareLinks of={share_links} />
      <Section title="Regions and ids">
        <Facts
          of={[
            ['Regions', <Regions key="regions" />],
            ['Game', <code key="game">{scope.game_id}</code>],
            ['Namespace', <code key="namespace">{scope.namespace_id}</code>],
          ]}
        />
      </Section>
      <Group group_id={game.developer_group_id} />
    </>
  );
}

function Regions() {
  const { game } = useNamespace();
  return (
    <>
      {game.available_regions.map((one) => `${one.region_display_name} (${one.region_name_id})`).join(', ') || 'none'}
    </>
  );
}

/** The members of the group, for people. A tool of one game may not see them. */
function Group({ group_id }: { group_id: string }) {
  const watched = useWatched('/group/groups/{group_id}/profile', { group_id }).value;
  if (watched.is !== 'here') return null;
  return <Members group={watched.body.group} />;
}

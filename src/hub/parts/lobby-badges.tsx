import { badgesOf } from '../data/lobbies.ts';
import { useNamespace } from '../data/namespaces.ts';

/** What is worth knowing of a running lobby at a glance. */
export function LobbyBadges({ of }: { of: Parameters<typeof badgesOf>[0] }) {
  const { namespace } = useNamespace();
  return (
    <span class="badges">
      {badgesOf(of, namespace.version_id).map(({ text, tone }) => (
        <span key={text} class={`badge ${tone}`}>
          {text}
        </span>
      ))}
    </span>
  );
}

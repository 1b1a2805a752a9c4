import { may_act } from '../data/bearer.ts';
import { deploy } from '../data/deployments.ts';
import { useNamespace, versionName } from '../data/namespaces.ts';
import { Confirm } from './confirm.tsx';
import { Differences } from './differences.tsx';

/** A button that puts this namespace on a version, after it has shown what changes. */
export function DeployButton({ version_id }: { version_id: string }) {
  const { game, namespace } = useNamespace();
  if (!may_act.value || version_id === namespace.version_id) return null;
  return (
    <Confirm
      label="Deploy"
      subject={versionName(game, version_id)}
      question={`Deploy ${versionName(game, version_id)} to ${namespace.name_id}?`}
      class="small main"
      onConfirm={() => void deploy({ game, namespace }, version_id)}
    >
      <Consequences version_id={version_id} />
    </Confirm>
  );
}

/** What a deploy or a rollback changes. */
export function Consequences({ version_id }: { version_id: string }) {
  const { game, namespace } = useNamespace();
  return (
    <>
      <p>New lobbies get this version. Running lobbies go on with the one they have, until they end.</p>
      <Differences game_id={game.game_id} before={namespace.version_id} after={version_id} />
    </>
  );
}

import { EXIT, Failure } from '../../terminal/failure.ts';
import { paths } from '../paths.ts';
import { countOldLobbies, describeOldLobbies } from '../project/old-lobbies.ts';
import { switchTo } from '../project/versions.ts';
import { Session, type SharedOptions, withNamespace } from '../session.ts';

/** Puts a namespace back on the version that was live before. */
export async function rollback(given: string | undefined, options: SharedOptions): Promise<void> {
  const session = await Session.open(withNamespace(options, given));
  const scope = await session.scope();
  const { game, namespace } = scope;
  const { name_id, version_id: current } = namespace;
  const path = `${paths.namespace(scope)}/version-history`;
  const { versions } = await session.api.get<{ versions: { version_id: string }[] }>(path);
  const before = versions.find(({ version_id }) => version_id !== current)?.version_id;
  if (before === undefined) {
    const advice = `Deploy one: ${session.commandFor(game, `deploy ${name_id}`)}`;
    throw new Failure(`The namespace "${name_id}" has had no other version. ${advice}`, EXIT.not_found);
  }
  await switchTo(session, scope, before);
  const nameOf = (id: string) => game.versions.find(({ version_id }) => version_id === id)?.display_name ?? id;
  const old_lobbies = await countOldLobbies(session, scope, before);
  session.show({ namespace: name_id, version_id: before, old_lobbies }, (output) => {
    output.line(`${game.name_id} ${name_id}: ${nameOf(current)} → ${nameOf(before)}`);
    output.say(describeOldLobbies(old_lobbies));
  });
}

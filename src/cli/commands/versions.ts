import { differencesOf } from '../../shared/difference.ts';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { ago } from '../../terminal/terminal.ts';
import { type Game, Session, type SharedOptions } from '../session.ts';

export interface Version {
  version_id: string;
  display_name: string;
  create_ts: string;
  config: object;
}

/** Lists the versions of a game, newest first, with the namespaces that are on them. */
export async function listVersions(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const { namespaces, versions } = await session.game();
  const liveIn = (id: string) =>
    namespaces
      .filter(({ version_id }) => version_id === id)
      .map(({ name_id }) => name_id)
      .join(', ') || '-';
  session.show({ versions }, (output) =>
    output.table(
      ['VERSION', 'LIVE IN', 'AGE', 'ID'],
      versions
        .toSorted((one, other) => other.create_ts.localeCompare(one.create_ts))
        .map(({ display_name, version_id, create_ts }) => [
          display_name,
          liveIn(version_id),
          ago(create_ts),
          version_id,
        ]),
    ),
  );
}

/** Shows a version with its configuration. */
export async function showVersion(given: string, options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const version = await readVersion(session, await session.game(), given);
  session.show({ version }, (output) => output.record(version));
}

/** Shows where the configurations of two versions differ. */
export async function compareVersions(from: string, to: string, options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const game = await session.game();
  const [one, other] = [await readVersion(session, game, from), await readVersion(session, game, to)];
  const differences = differencesOf(one.config, other.config).map(({ path, before, after }) => ({
    key: path,
    from: toText(before),
    to: toText(after),
  }));
  session.show({ differences }, (output) => {
    if (differences.length === 0) output.say('The two versions have the same configuration. Secrets are not compared.');
    for (const { key, from: old, to: changed } of differences) {
      if (old !== undefined) output.line(`- ${key}: ${old}`);
      if (changed !== undefined) output.line(`+ ${key}: ${changed}`);
    }
  });
}

/** Returns a version by its name or id. Throws Failure unless there is exactly one. */
export async function readVersion(session: Session, game: Game, given: string): Promise<Version> {
  const found = game.versions.filter(({ version_id, display_name }) => [version_id, display_name].includes(given));
  const [first, ...others] = found;
  if (!first) {
    const advice = `List them: ${session.commandFor(game, 'versions')}`;
    throw new Failure(`The game has no version "${given}". ${advice}`, EXIT.not_found);
  }
  if (others.length > 0)
    throw new Failure(`${found.length} versions have the name "${given}": write an id.`, EXIT.wrong_use);
  const path = `/cloud/games/${game.game_id}/versions/${first.version_id}`;
  return (await session.api.get<{ version: Version }>(path)).version;
}

/** Returns a value of a configuration as JSON; undefined for none. */
function toText(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}

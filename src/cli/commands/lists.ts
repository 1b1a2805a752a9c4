import { ago } from '../../terminal/terminal.ts';
import { Session, type SharedOptions } from '../session.ts';

interface Build {
  build_id: string;
  display_name: string;
  create_ts: string;
  content_length: number;
  complete: boolean;
}

/** Lists the namespaces of a game. */
export async function listNamespaces(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const { namespaces, versions } = await session.game();
  const nameOf = (id: string) => versions.find(({ version_id }) => version_id === id)?.display_name ?? '-';
  session.show({ namespaces }, (output) =>
    output.table(
      ['NAMESPACE', 'NAME', 'VERSION', 'ID'],
      namespaces.map(({ name_id, display_name, version_id, namespace_id }) => [
        name_id,
        display_name,
        nameOf(version_id),
        namespace_id,
      ]),
    ),
  );
}

/** Lists the builds of a game, newest first. */
export async function listBuilds(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const { game_id } = await session.game();
  const answer = await session.api.get<{ builds: Build[] }>(`/cloud/games/${game_id}/builds`);
  session.show(answer, (output) =>
    output.table(
      ['BUILD', 'MB', 'STATE', 'AGE', 'ID'],
      answer.builds.map(({ build_id, display_name, content_length, complete, create_ts }) => [
        display_name,
        (content_length / 1_000_000).toFixed(1),
        complete ? 'complete' : 'not complete',
        ago(create_ts),
        build_id,
      ]),
    ),
  );
}

/** Lists the regions of a game. */
export async function listRegions(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const { available_regions: regions } = await session.game();
  session.show({ regions }, (output) =>
    output.table(
      ['REGION', 'NAME', 'ID'],
      regions.map(({ region_name_id, region_display_name, region_id }) => [
        region_name_id,
        region_display_name,
        region_id,
      ]),
    ),
  );
}

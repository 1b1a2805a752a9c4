import { ago, toSentence } from '../../terminal/terminal.ts';
import { paths } from '../paths.ts';
import { readServers } from '../servers.ts';
import { Session, type SharedOptions } from '../session.ts';

interface Health {
  status?: string;
  isolation?: { level: string };
  warnings?: { message: string }[];
}

/** Shows what runs in a namespace, which version is live, and the warnings of the service. */
export async function status(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const scope = await session.scope();
  const { game, namespace } = scope;
  const [live, servers, health] = await Promise.all([
    session.api.get<{ lobbies: { total_player_count: number }[] }>(paths.runningLobbies(scope)),
    readServers(session, scope),
    session.api.get<Health>('/health/ready'),
  ]);
  const version = game.versions.find(({ version_id }) => version_id === namespace.version_id);
  const players = live.lobbies.reduce((sum, { total_player_count }) => sum + total_player_count, 0);
  const counts = { players, lobbies: live.lobbies.length, servers: servers.length };
  session.show({ game: game.name_id, namespace: namespace.name_id, version, ...counts, health }, (output) => {
    output.table(
      ['GAME', 'NAMESPACE', 'VERSION', 'PLAYERS', 'LOBBIES', 'SERVERS'],
      [[game.name_id, namespace.name_id, version?.display_name ?? '-', ...Object.values(counts).map(String)]],
    );
    if (version) output.say(`The version is ${ago(version.create_ts)} old.`);
    for (const { message } of health.warnings ?? []) output.say(toSentence(message));
  });
}

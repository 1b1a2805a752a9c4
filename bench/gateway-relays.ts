// Measures relays: `bun bench/gateway-relays.ts`. TCP and UDP of a game server, directly and through Muster, and TLS
// handshakes with Muster and with Bun alone, by turns.
import { join } from 'node:path';
import { makeGame, uploadScript } from '../tests/support/game.ts';
import { commandOf, makeHome, type Program } from '../tests/support/program.ts';
import { certifyLocalhost, ECHO_SOURCE } from '../tests/support/relayed.ts';
import { serversOf } from '../tests/support/servers.ts';
import { measureWays, type Result } from './gateway/ways.ts';
import { atLeast, type Goal, printGoals, show, within } from './report.ts';
import { runBench } from './run.ts';

const SECONDS = 4;
const CLIENTS = 64;
const CONCURRENT_HANDSHAKES = 16;
const PACKETS_A_SECOND_MIN = 50_000;
const HOST = '127.0.0.1';
/** Enough that nothing but the machine limits the server. */
const RESOURCES = { cpu: 4_000, memory: 512 };

type Kind = 'tcp' | 'handshake' | 'udp';
interface Way {
  name: string;
  port: number;
}

await runBench(async (opened) => {
  const { settings } = await certifyLocalhost();
  const home = opened.use(
    await makeHome({ ...settings, MUSTER_RELAYS: 'all', MUSTER_LIMITS: 'off', MUSTER_DEMO: 'off' }),
  );
  const program = await home.start({ command: commandOf('source') });
  const ports = await startServer(program);
  const peer = Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, 'gateway/tls-peer.ts'),
      settings.MUSTER_TLS_CERTIFICATE,
      settings.MUSTER_TLS_KEY,
    ],
    { stdout: 'pipe' },
  );
  opened.defer(() => peer.kill());
  const { value } = await peer.stdout.getReader().read();
  const peer_port = Number(new TextDecoder().decode(value));
  const waysTo = ({ internal_port, public_port }: ListedPort): Way[] => [
    { name: 'direct', port: internal_port },
    { name: 'Muster', port: public_port },
  ];

  const goals: Goal[] = [];
  // No goal: with two cores for three processes, it measures the machine.
  await measure('tcp', waysTo(ports.plain), CLIENTS);
  const [one_direct, one] = await measure('tcp', waysTo(ports.plain), 1);
  const alone = { name: 'Bun alone', port: peer_port };
  const with_tls = [alone, { name: 'Muster', port: ports.game.public_port }];
  const [tls_alone, tls] = await measure('handshake', with_tls, CONCURRENT_HANDSHAKES);
  const [, udp] = await measure('udp', waysTo(ports.voice), CLIENTS);
  if (!one_direct || !one || !tls_alone || !tls || !udp) return;
  goals.push(within('TCP: added p50 of one client', 0.3, one.p50_ms - one_direct.p50_ms));
  goals.push(atLeast('TLS handshakes/s of Bun alone', 0.8, tls.a_second / tls_alone.a_second));
  // A packet of a client, and its answer.
  const packets = 2 * udp.a_second;
  const limit = `>= ${show.perSecond(PACKETS_A_SECOND_MIN)}`;
  const is_met = packets >= PACKETS_A_SECOND_MIN;
  goals.push({ what: 'UDP packets/s through the relay', limit, figure: show.perSecond(packets), is_met });
  printGoals(goals);
});

/** Measures ways by turns. Returns the medians of each. */
async function measure(kind: Kind, ways: Way[], clients: number): Promise<Result[]> {
  const load = join(import.meta.dir, 'gateway/relay-load.ts');
  return await measureWays({
    title: `${kind}, ${clients} at once`,
    ways,
    argumentsFor: ({ port }) => [load, kind, HOST, String(port), String(clients), String(SECONDS)],
  });
}

/** A port as the server list has it. */
interface ListedPort {
  internal_port: number;
  public_port: number;
}

/** Starts a game server that answers what it gets. */
async function startServer(program: Program): Promise<Record<'game' | 'plain' | 'voice', ListedPort>> {
  const game = await makeGame(program.api, program.administrator_token);
  const servers = serversOf(program, game);
  const build = await uploadScript(program.api, game, ECHO_SOURCE);
  const ports = { game: { protocol: 'tcp_tls' }, plain: { protocol: 'tcp' }, voice: { protocol: 'udp' } };
  const created = await servers.create(await servers.bodyOf(build, { network: { ports }, resources: RESOURCES }));
  const { id } = created.body.server;
  await servers.waitForLines(id, 1);
  return (await servers.waitForStart(id)).network.ports;
}

import { type Config, ignoreHttpProxy, takeConfig } from '../config.ts';
import { createLog } from '../platform/events.ts';
import { type KeptEvents, keepEvents } from '../platform/kept-events.ts';
import { VERSION } from '../platform/version.ts';
import { openService, type Service } from '../service.ts';
import { EXIT } from '../terminal/failure.ts';
import { listenForStop, type StopSignal } from '../terminal/stop-signals.ts';
import { closeInTime } from './closing.ts';
import { allowMoreFetches } from './more-fetches.ts';
import { stopServers } from './stop-servers.ts';

/** Longer than a stop usually takes once players have left, with open requests and the deadlines of the database. */
const STOP_WITHIN_MS = 30_000;

/** Serves until SIGTERM or SIGHUP, which leave game servers running for the next start, or ctrl-C, which ends them too. */
export function serve(): Promise<number> {
  // PostgreSQL has its own session, so a signal during the start must not end this process without it.
  return serveUntil(listenForStop(leave));
}

/** Serves for `muster dev`: also stops, with its game servers, once standard input ends, which that command holds open. */
export function serveDev(): Promise<number> {
  const input_ended = Bun.stdin.text().then((): StopSignal => 'SIGINT');
  return serveUntil(Promise.race([listenForStop(leave), input_ended]));
}

const leave = () => process.exit(EXIT.interrupted);

async function serveUntil(stop_requested: Promise<StopSignal>): Promise<number> {
  allowMoreFetches();
  ignoreHttpProxy();
  const started = performance.now();
  const config = takeConfig();
  const log = createLog(config.log);
  const events = keepEvents(log);
  // An unhandled rejection must not end the service. The request or step that caused it has failed already.
  process.on('unhandledRejection', (cause) => events.emit({ event: 'unexpected_failure', cause }));
  const giving_up = new AbortController();
  void stop_requested.then((reason) => giving_up.abort(reason));
  const service = await openUnlessStopped(config, events, giving_up.signal);
  if (!service) {
    await log.flush();
    return 0;
  }
  const started_in_ms = Math.round(performance.now() - started);
  console.log(await greeting(config, service));
  events.emit({ event: 'service_started', version: VERSION, url: config.public_url, started_in_ms });

  const reason = await stop_requested;
  events.emit({ event: 'service_stopping', reason });
  if (reason === 'SIGINT') {
    console.log(
      'Stopping the service and its game servers. Press ctrl-C again to exit at once; the next start finds what still runs.',
    );
    await stopServers(service, events);
  }
  const is_closed = await closeInTime(service, { within_ms: STOP_WITHIN_MS + config.gateway.drain_ms, events });
  await log.flush();
  return is_closed ? 0 : 1;
}

/** Opens the service. Returns undefined if a signal stopped it while it waited for its database. */
async function openUnlessStopped(
  config: Config,
  events: KeptEvents,
  signal: AbortSignal,
): Promise<Service | undefined> {
  try {
    return await openService(config, { events, signal });
  } catch (cause) {
    if (!signal.aborted || cause !== signal.reason) throw cause;
    events.emit({ event: 'service_stopping', reason: signal.reason });
    return undefined;
  }
}

async function greeting(config: Config, service: Service): Promise<string> {
  const { bootstrap_result, administrator_token_file } = service;
  const { is_first_start, administrator_token, demo } = bootstrap_result;
  const { prints_secrets } = config;
  const token = is_first_start && prints_secrets ? `${administrator_token}\n                       also in ` : '';
  // Without the database there is no link, and the service goes on.
  const hub_link = prints_secrets ? await service.createHubLink().catch(() => undefined) : undefined;
  return [
    `Muster ${VERSION} is at ${config.public_url}`,
    `  data                 ${config.data_directory}`,
    `  administrator token  ${token}${administrator_token_file}`,
    hub_link === undefined ? `  hub, with the token  ${config.public_url}` : `  hub, opens once      ${hub_link}`,
    ...(demo ? [`  demo, in two tabs    ${config.public_url}/demo`] : []),
    `  API, to try          ${config.public_url}/swagger`,
  ].join('\n');
}

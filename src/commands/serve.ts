import { type Config, readConfig } from '../config.ts';
import { createLog } from '../platform/events.ts';
import { openService, type Service, VERSION } from '../service.ts';

/** Serves until it is told to stop: by SIGTERM, which leaves game servers to the next start, or by ctrl-C, which does not. */
export async function serve(): Promise<number> {
  const started = performance.now();
  const config = readConfig();
  const events = createLog(config.log);
  // What nobody awaited must not end the service: it is logged, and the request or step that caused it has failed.
  process.on('unhandledRejection', (cause) => events.emit({ event: 'unexpected_failure', cause }));
  const service = await openService(config, { events });
  const started_in_ms = Math.round(performance.now() - started);
  console.log(greeting(config, service));
  events.emit({ event: 'service_started', version: VERSION, url: config.public_url, started_in_ms });

  const reason = await waitForSignal();
  events.emit({ event: 'service_stopping', reason });
  if (reason === 'SIGINT') {
    console.log('Stopping, game servers too. Press ctrl-C again to leave at once.');
    process.once('SIGINT', () => process.exit(130));
    await service.stopServers();
  }
  await service[Symbol.asyncDispose]();
  return 0;
}

function greeting(config: Config, { beginnings, administrator_token_file }: Service): string {
  const { is_first_start, administrator_token, demo } = beginnings;
  const token = is_first_start ? `${administrator_token}\n                       also in ` : '';
  return [
    `Muster ${VERSION} is at ${config.public_url}`,
    `  data                 ${config.data_directory}`,
    `  administrator token  ${token}${administrator_token_file}`,
    ...(demo ? [`  demo, in two tabs    ${config.public_url}/demo`] : []),
    `  API, to try          ${config.public_url}/swagger`,
  ].join('\n');
}

async function waitForSignal(): Promise<'SIGINT' | 'SIGTERM'> {
  const { promise, resolve } = Promise.withResolvers<'SIGINT' | 'SIGTERM'>();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  return await promise;
}

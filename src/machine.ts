import type { Config } from './config.ts';
import { evictFromPort } from './features/servers/eviction.ts';
import { createProcessRuntime } from './features/servers/runtimes/process.ts';
import type { Runtime } from './features/servers/runtimes/runtime.ts';
import { type AddressClasses, readAddressClasses } from './platform/address-classes.ts';
import { type DataDirectory, openDataDirectory } from './platform/data-directory.ts';
import type { Events } from './platform/events.ts';
import { createCors } from './platform/http/cors.ts';
import { type Answering, createPort } from './platform/http/listen.ts';
import { createWaitingAnswers } from './platform/http/waiting.ts';
import { openIpDatabase } from './platform/ip-database.ts';

/** What the service has on its machine, whether its database is there or not. */
export interface Machine extends AsyncDisposable {
  data: DataDirectory;
  runtime: Runtime;
  /** Undefined where the operator names none. */
  ip_database: Awaited<ReturnType<typeof openIpDatabase>> | undefined;
  address_classes: AddressClasses;
  /** Answers at the service's port from now on. Throws StartError when it cannot listen there. */
  answerBy(answering: Answering): Promise<void>;
  /** Answers there, until then, that the service is not ready, and why. */
  answerWaiting(reason: string): Promise<void>;
  /** Takes no more connections, and ends those there are in time. */
  stopAnswering(): Promise<void>;
  /** Lets other programs have the port while the service is away. */
  releasePort(): void;
}

/** Opens what needs no database. Throws StartError. */
export async function openMachine(config: Config, events: Events): Promise<Machine> {
  await using opened = new AsyncDisposableStack();
  const { ip_database_file, public_url, local_url } = config;
  const ip_database = ip_database_file === undefined ? undefined : await openIpDatabase(ip_database_file);
  const address_classes = await readAddressClasses(config.address_classes_file);
  const data = opened.use(openDataDirectory(config.data_directory));
  const runtime = await createProcessRuntime({
    directory: data.folder('servers'),
    programs_directory: data.folder('programs'),
  });
  const is_root = process.getuid?.() === 0;
  const port = createPort({ ...config, hold_file: is_root ? `${data.path}/port-hold` : undefined });

  let waits_because: string | undefined;
  const waiting: Answering = {
    fetch: createWaitingAnswers({
      cors: createCors([public_url, local_url]),
      public_url,
      reason: () => waits_because ?? 'it is starting',
    }),
    evict: (taken) => evictFromPort({ events, runtime }, taken),
  };
  opened.defer(async () => {
    await port.stop();
    // Without the database nothing else tells whether game servers stay, who must not find the port free.
    if (waits_because !== undefined && (await runtime.list()).length === 0) port.release();
  });
  const everything = opened.move();
  return {
    data,
    runtime,
    ip_database,
    address_classes,
    async answerBy(answering) {
      await port.answerBy(answering);
      waits_because = undefined;
    },
    async answerWaiting(reason) {
      const is_new = waits_because === undefined;
      waits_because = reason;
      if (is_new) await port.answerBy(waiting);
    },
    stopAnswering: port.stop,
    releasePort: port.release,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

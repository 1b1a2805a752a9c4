import { StartError } from '../errors.ts';
import { isErrno } from '../processes.ts';
import type { Sockets } from '../socket/sockets.ts';
import type { App } from './app.ts';

/** Where to listen. */
interface Place {
  host: string;
  port: number;
}

/** Takes requests and WebSockets from now on. Throws {@link StartError} when it cannot. */
export function listen(app: App, { host, port }: Place, websocket: Sockets['handlers']): void {
  try {
    app.listen({ hostname: host, port, websocket });
  } catch (cause) {
    const is_taken = isErrno(cause, 'EADDRINUSE');
    const what = is_taken
      ? `Port ${port} is taken by another program: stop that one, or set MUSTER_PORT to a free port.`
      : `The service cannot listen at ${host}:${port} (${cause}): check MUSTER_HOST and MUSTER_PORT.`;
    throw new StartError(what, { cause });
  }
}

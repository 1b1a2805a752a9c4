import { toFinding } from '../../findings.ts';
import type { Unavailability } from '../../unavailability.ts';
import { createCors } from '../cors.ts';
import { createPort, type Port, type PortHandlers, type PortOptions } from './listen.ts';
import { createNotReadyAnswers } from './not-ready.ts';

const STARTING: Unavailability = {
  code: 'DATABASE_UNAVAILABLE',
  finding: toFinding('SERVICE_STARTING', 'the service is starting'),
};

interface ServicePortOptions extends PortOptions {
  public_url: string;
  local_url: string;
  /** Ends the game servers that have the port while the service is not ready. Returns how many. */
  endServersOnPort: PortHandlers['endServersOnPort'];
  answerUnsent: PortHandlers['answerUnsent'];
}

/** The service's port. It can answer before the service is ready: with the reason why it is not. */
export class ServicePort {
  readonly #port: Port;
  readonly #not_ready: PortHandlers;
  /** The latest call that sets handlers; undefined before the first. */
  #setting: Promise<void> | undefined;
  /** What requests are answered with; undefined if the port has the handlers of a service that is ready, or none. */
  #unavailability: Unavailability | undefined;

  constructor(options: ServicePortOptions) {
    const { public_url, local_url, endServersOnPort, answerUnsent } = options;
    const cors = createCors([public_url, local_url]);
    const unavailability = () => this.#unavailability ?? STARTING;
    this.#port = createPort(options);
    const fetch = createNotReadyAnswers({ cors, public_url, unavailability });
    this.#not_ready = { fetch, endServersOnPort, answerUnsent };
  }

  /** Whether requests are answered with the reason why the service is not ready. */
  get answers_not_ready(): boolean {
    return this.#unavailability !== undefined;
  }

  /** Answers all requests from now on. Throws StartError if the service cannot listen at the port. */
  async setHandlers(handlers: PortHandlers): Promise<void> {
    await this.#setInTurn(handlers);
    this.#unavailability = undefined;
  }

  /** Answers all requests with the reason why the service is not ready, until `setHandlers` is called. Throws StartError. */
  async answerNotReady(reason: Unavailability): Promise<void> {
    const is_first = !this.answers_not_ready;
    this.#unavailability = reason;
    await (is_first ? this.#setInTurn(this.#not_ready) : this.#setting);
  }

  /** Answers all requests with the reason that the service is starting, if the port is free and not open yet. */
  async answerStarting(): Promise<void> {
    if (this.#setting !== undefined) return;
    this.#unavailability = STARTING;
    try {
      // Ends no game server that has the port, because the reason could not be recorded yet.
      await this.#setInTurn({ ...this.#not_ready, endServersOnPort: async () => 0 });
    } catch {
      this.#unavailability = undefined;
    }
  }

  /** Accepts no more connections, and ends the open ones within a time limit. */
  async stop(): Promise<void> {
    await this.#setting?.catch(() => {});
    await this.#port.stop();
  }

  /** Lets other programs have the port while the service is stopped. */
  release(): void {
    this.#port.release();
  }

  /** Runs calls one at a time, because the first one that succeeds opens the port. */
  #setInTurn(handlers: PortHandlers): Promise<void> {
    const before = this.#setting?.catch(() => {}) ?? Promise.resolve();
    this.#setting = before.then(() => this.#port.setHandlers(handlers));
    return this.#setting;
  }
}

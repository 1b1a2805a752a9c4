/** Aborts a transfer if the other side is silent for too long while it is that side's turn to send or receive. */
export interface IdleTimeout {
  signal: AbortSignal;
  /** Starts or restarts the timeout. */
  start(): void;
  /** Stops the timeout, when it is our turn or the transfer is over. */
  stop(): void;
}

export function createIdleTimeout(idle_ms: number): IdleTimeout {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => clearTimeout(timer);
  return {
    signal: controller.signal,
    start() {
      stop();
      timer = setTimeout(() => controller.abort(new DOMException(`silent for ${idle_ms} ms`, 'TimeoutError')), idle_ms);
    },
    stop,
  };
}

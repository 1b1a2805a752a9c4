/** Gives up work with somebody outside when he is silent for too long while it is his turn. */
export interface Patience {
  /** Aborted when he was silent for too long. */
  signal: AbortSignal;
  /** It is his turn, from now on. */
  begin(): void;
  /** It is not, or all is done. */
  end(): void;
}

export function createPatience(patience_ms: number): Patience {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => clearTimeout(timer);
  return {
    signal: controller.signal,
    begin() {
      end();
      timer = setTimeout(
        () => controller.abort(new DOMException(`silent for ${patience_ms} ms`, 'TimeoutError')),
        patience_ms,
      );
    },
    end,
  };
}

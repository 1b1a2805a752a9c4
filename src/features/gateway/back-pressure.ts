/** Unsent bytes above which the source is paused. What Bun has read by then, half a megabyte at most, comes too. */
const UNSENT_BYTES_MAX = 64 * 1024;
/** Intervals at which a full target is checked: short while it accepts something. */
const CHECK_AFTER_MS = { min: 2, max: 256 };

interface BackPressureOptions {
  /** The WebSocket that is read. */
  source: { pause(): unknown; resume(): unknown };
  /** Returns the bytes that the target has not accepted. */
  unsentBytes(): number;
  /** How long the target may accept nothing. */
  stuck_max_ms: number;
  /** Called once, after that time. */
  onStuck(): void;
}

/**
 * Pauses a WebSocket while the one that gets its frames does not accept them, so that a slow reader slows its writer
 * down. Checks the target at intervals, because Bun does not say when its own WebSockets accept more.
 */
export class BackPressure {
  readonly #options: BackPressureOptions;
  #timer: Timer | undefined;
  #check_after_ms = CHECK_AFTER_MS.min;
  #unsent_bytes = 0;
  #accepted_at = 0;

  constructor(options: BackPressureOptions) {
    this.#options = options;
  }

  /** Pauses the source if too many bytes are unsent. Call it after each frame. */
  pauseIfFull(): void {
    if (this.#timer) return;
    const unsent_bytes = this.#options.unsentBytes();
    if (unsent_bytes <= UNSENT_BYTES_MAX) return;
    this.#options.source.pause();
    this.#unsent_bytes = unsent_bytes;
    this.#accepted_at = performance.now();
    this.#checkAgain(CHECK_AFTER_MS.min);
  }

  /** Resumes the source if the target has accepted enough. Calls `onStuck` if it has accepted nothing for too long. */
  resumeIfAccepted(): void {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    const { source, unsentBytes, stuck_max_ms, onStuck } = this.#options;
    const unsent_bytes = unsentBytes();
    if (unsent_bytes <= UNSENT_BYTES_MAX) {
      this.#timer = undefined;
      source.resume();
      return;
    }
    const now = performance.now();
    const has_accepted = unsent_bytes < this.#unsent_bytes;
    this.#unsent_bytes = unsent_bytes;
    if (has_accepted) this.#accepted_at = now;
    if (now - this.#accepted_at >= stuck_max_ms) {
      this.stop();
      onStuck();
      return;
    }
    this.#checkAgain(has_accepted ? CHECK_AFTER_MS.min : Math.min(this.#check_after_ms * 2, CHECK_AFTER_MS.max));
  }

  /** Lets the source be read to its end. */
  stop(): void {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#options.source.resume();
  }

  #checkAgain(after_ms: number): void {
    this.#check_after_ms = after_ms;
    this.#timer = setTimeout(() => this.resumeIfAccepted(), after_ms);
  }
}

// Limits how often the same warning is logged, so that a repeated fault does not fill the disk.

export interface FloodOptions {
  /** Maximum lines of the same event in a time window. */
  most: number;
  windowMs: number;
  /** Returns monotonic milliseconds. */
  nowMs(): number;
  /** Called at the end of a time window with the number of lines of an event that were not written. */
  suppressed(event: string, times: number, seconds: number): void;
}

interface Window {
  endsMs: number;
  written: number;
  heldBack: number;
}

/** Counts lines by event name. All names are constants of the program, so there are few. */
export class FloodControl {
  readonly #options: FloodOptions;
  readonly #windows = new Map<string, Window>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: FloodOptions) {
    this.#options = options;
  }

  /** Counts a line and returns whether it may be written. */
  admits(event: string): boolean {
    const { most, windowMs } = this.#options;
    const now = this.#options.nowMs();
    let window = this.#windows.get(event);
    if (!window || now >= window.endsMs) {
      if (window) this.#report(event, window);
      window = { endsMs: now + windowMs, written: 0, heldBack: 0 };
      this.#windows.set(event, window);
    }
    if (window.written < most) {
      window.written++;
      return true;
    }
    window.heldBack++;
    this.#timer ??= setTimeout(() => this.#sweep(), windowMs).unref();
    return false;
  }

  /** Reports all lines that were not written so far. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [event, window] of this.#windows) this.#report(event, window);
  }

  #sweep(): void {
    this.flush();
    const now = this.#options.nowMs();
    for (const [event, window] of this.#windows) if (now >= window.endsMs) this.#windows.delete(event);
  }

  #report(event: string, window: Window): void {
    const { heldBack } = window;
    if (heldBack === 0) return;
    window.heldBack = 0;
    this.#options.suppressed(event, heldBack, Math.round(this.#options.windowMs / 1000));
  }
}

// Bounds how often one warning is written: a fault that repeats itself must not fill a disk.

export interface FloodOptions {
  /** Lines of one event within a window. */
  most: number;
  windowMs: number;
  /** Milliseconds that never go back. */
  nowMs(): number;
  /** Told once at the end of a window: how often an event was held back. */
  suppressed(event: string, times: number, seconds: number): void;
}

interface Window {
  endsMs: number;
  written: number;
  heldBack: number;
}

/** Events are words of the program, so there are not many of them. */
export class FloodControl {
  readonly #options: FloodOptions;
  readonly #windows = new Map<string, Window>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: FloodOptions) {
    this.#options = options;
  }

  /** Whether this one may be written; it is counted either way. */
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

  /** Tells of what was held back so far. */
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

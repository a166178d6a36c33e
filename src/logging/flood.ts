// Limits how often one warning is logged: a fault that repeats must not fill a disk.

export interface FloodOptions {
  /** Maximum lines of one event in a window. */
  most: number;
  windowMs: number;
  /** Returns milliseconds that never go back. */
  nowMs(): number;
  /** Called once at the end of a window with the number of suppressed lines of an event. */
  suppressed(event: string, times: number, seconds: number): void;
}

interface Window {
  endsMs: number;
  written: number;
  heldBack: number;
}

/** Event names are fixed words of the program, so their number is small. */
export class FloodControl {
  readonly #options: FloodOptions;
  readonly #windows = new Map<string, Window>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: FloodOptions) {
    this.#options = options;
  }

  /** Reports whether the line may be written. Counts the line in either case. */
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

  /** Reports everything that was suppressed so far. */
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

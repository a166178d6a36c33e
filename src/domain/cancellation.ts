// Tells the parts of one request that nobody wants its answer any more.

/** An AbortController does the same at several times the cost, which every request would pay. */
export class Cancellation {
  #reason: unknown;
  #cancelled = false;
  #listeners: Set<() => void> | undefined;
  #controller: AbortController | undefined;

  get cancelled(): boolean {
    return this.#cancelled;
  }

  /** Without meaning until it is cancelled. */
  get reason(): unknown {
    return this.#reason;
  }

  /** Only the first call counts. Listeners are called before it returns. */
  cancel(reason: unknown = new DOMException("The request was cancelled", "AbortError")): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#reason = reason;
    const listeners = this.#listeners;
    this.#listeners = undefined;
    for (const listener of listeners ?? []) listener();
    this.#controller?.abort(reason);
  }

  /** Calls `listener` once when it is cancelled: at once where it is already. */
  onCancel(listener: () => void): void {
    if (this.#cancelled) {
      listener();
      return;
    }
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  /** `listener` is not called any more. */
  off(listener: () => void): void {
    this.#listeners?.delete(listener);
  }

  throwIfCancelled(): void {
    if (this.#cancelled) throw this.#reason;
  }

  /** For what takes nothing else; made when it is asked for. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#cancelled) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }
}

// Tells the parts of one request that its answer is no longer wanted.

/** A listener without a closure. */
export interface CancelListener {
  /** Called once. */
  cancelled(): void;
}

type Listener = CancelListener | (() => void);

/** An AbortController does the same at several times the cost, and every request would pay it. */
export class Cancellation {
  #reason: unknown;
  #cancelled = false;
  /** Usually there is one listener at a time. */
  #first: Listener | undefined;
  #others: Set<Listener> | undefined;
  #controller: AbortController | undefined;

  get cancelled(): boolean {
    return this.#cancelled;
  }

  /** The reason of the cancellation, without meaning before it. */
  get reason(): unknown {
    return this.#reason;
  }

  /** Only the first call counts. Listeners are called before it returns. */
  cancel(reason: unknown = new DOMException("The request was cancelled", "AbortError")): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#reason = reason;
    const first = this.#first;
    const others = this.#others;
    this.#first = undefined;
    this.#others = undefined;
    if (first) notify(first);
    for (const listener of others ?? []) notify(listener);
    this.#controller?.abort(reason);
  }

  /** Calls `listener` once at the cancellation, or immediately if it has happened. */
  onCancel(listener: Listener): void {
    if (this.#cancelled) {
      notify(listener);
    } else if (this.#first === undefined) {
      this.#first = listener;
    } else {
      this.#others ??= new Set();
      this.#others.add(listener);
    }
  }

  /** Stops telling `listener`. */
  off(listener: Listener): void {
    if (this.#first === listener) this.#first = undefined;
    else this.#others?.delete(listener);
  }

  throwIfCancelled(): void {
    if (this.#cancelled) throw this.#reason;
  }

  /** The same as an AbortSignal, for interfaces that require one. It is created on first use. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#cancelled) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }
}

function notify(listener: Listener): void {
  if (typeof listener === "function") listener();
  else listener.cancelled();
}

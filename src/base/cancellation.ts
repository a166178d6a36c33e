// Notifies the parts of one request when its answer is no longer wanted.

/** An object that is notified of a cancellation. It needs no closure. */
export interface CancelListener {
  /** Called once, at the cancellation. */
  cancelled(): void;
}

type Listener = CancelListener | (() => void);

/** A cheaper AbortController: every request has a cancellation, and an AbortController costs several times as much. */
export class Cancellation {
  #reason: unknown;
  #cancelled = false;
  /** The first listener. Most cancellations have no other. */
  #first: Listener | undefined;
  #others: Set<Listener> | undefined;
  #controller: AbortController | undefined;

  get cancelled(): boolean {
    return this.#cancelled;
  }

  /** The reason of the cancellation. Before the cancellation, it has no meaning. */
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

  /** Calls `listener` once at the cancellation, or immediately if already cancelled. */
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

  /** Unregisters `listener`. */
  off(listener: Listener): void {
    if (this.#first === listener) this.#first = undefined;
    else this.#others?.delete(listener);
  }

  throwIfCancelled(): void {
    if (this.#cancelled) throw this.#reason;
  }

  /** Returns an equivalent AbortSignal, for interfaces that require one. It is created on first use. */
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

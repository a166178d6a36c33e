// Tells the parts of one request that nobody wants its answer any more.

/** A listener without a closure. */
export interface CancelListener {
  /** Called once. */
  cancelled(): void;
}

type Listener = CancelListener | (() => void);

/** An AbortController does the same at several times the cost, which every request would pay. */
export class Cancellation {
  #reason: unknown;
  #cancelled = false;
  /** Mostly there is one at a time. */
  #first: Listener | undefined;
  #others: Set<Listener> | undefined;
  #controller: AbortController | undefined;

  get cancelled(): boolean {
    return this.#cancelled;
  }

  /** The reason of the cancellation; without meaning before it. */
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
    if (first) tell(first);
    for (const listener of others ?? []) tell(listener);
    this.#controller?.abort(reason);
  }

  /** Tells `listener` once when it is cancelled: at once where it is already. */
  onCancel(listener: Listener): void {
    if (this.#cancelled) {
      tell(listener);
    } else if (this.#first === undefined) {
      this.#first = listener;
    } else {
      this.#others ??= new Set();
      this.#others.add(listener);
    }
  }

  /** `listener` is not told any more. */
  off(listener: Listener): void {
    if (this.#first === listener) this.#first = undefined;
    else this.#others?.delete(listener);
  }

  throwIfCancelled(): void {
    if (this.#cancelled) throw this.#reason;
  }

  /** The same as an AbortSignal, for interfaces that take nothing else; made when it is asked for. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#cancelled) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }
}

function tell(listener: Listener): void {
  if (typeof listener === "function") listener();
  else listener.cancelled();
}

// A promise-like value whose listeners run synchronously when it is settled. Every request waits for such values. A
// promise for each wait would cost more.

/** A value that is available now or later. `await` accepts both. */
export type MaybePromise<Value> = Promise<Value> | Deferred<Value>;

/**
 * These two callbacks are declared as methods, so that TypeScript accepts a listener whose `owner` has a narrower type.
 */
interface Listener<Value> {
  onValue(value: Value, owner: unknown): void;
  onError(error: unknown, owner: unknown): void;
  readonly owner: unknown;
}

/**
 * A cheaper promise. A promise calls back in a separate task and costs several objects for each wait, and a request
 * waits about ten times. `resolve` and `reject` call the listeners synchronously, in order. An exception in a listener
 * becomes an uncaught exception of the process. It does not affect the settling code or other listeners. A rejection
 * without a listener is ignored.
 */
export class Deferred<Value> implements PromiseLike<Value> {
  #state: "open" | "resolved" | "rejected" = "open";
  /** The resolved value, or the error. */
  #outcome: unknown;
  /** Callback of the first listener. Most values have no other listener. */
  #onValue: Listener<Value>["onValue"] | undefined;
  #onError: Listener<Value>["onError"] | undefined;
  #owner: unknown;
  #others: Listener<Value>[] | undefined;

  /** Only the first call of `resolve` or `reject` counts. */
  resolve(value: Value): void {
    if (this.#state !== "open") return;
    this.#state = "resolved";
    this.#outcome = value;
    const onValue = this.#onValue;
    const owner = this.#owner;
    const others = this.#others;
    this.#forgetListeners();
    if (onValue) notify(onValue, value, owner);
    if (others) for (const other of others) notify(other.onValue, value, other.owner);
  }

  reject(error: unknown): void {
    if (this.#state !== "open") return;
    this.#state = "rejected";
    this.#outcome = error;
    const onError = this.#onError;
    const owner = this.#owner;
    const others = this.#others;
    this.#forgetListeners();
    if (onError) notify(onError, error, owner);
    if (others) for (const other of others) notify(other.onError, error, other.owner);
  }

  /**
   * Calls `onValue` or `onError` once, immediately if the value is already settled. Both functions also get `owner`, so
   * that two shared functions can serve all waits without a closure for each.
   */
  whenSettled(onValue: (value: Value) => void, onError: (error: unknown) => void): void;
  whenSettled<Owner>(
    onValue: (value: Value, owner: Owner) => void,
    onError: (error: unknown, owner: Owner) => void,
    owner: Owner,
  ): void;
  whenSettled(onValue: Listener<Value>["onValue"], onError: Listener<Value>["onError"], owner?: unknown): void {
    if (this.#state === "resolved") onValue(this.#outcome as Value, owner);
    else if (this.#state === "rejected") onError(this.#outcome, owner);
    else if (this.#onValue === undefined) {
      this.#onValue = onValue;
      this.#onError = onError;
      this.#owner = owner;
    } else {
      this.#others ??= [];
      this.#others.push({ onValue, onError, owner });
    }
  }

  /** Makes it possible to `await` the value, or to pass it as a promise. */
  // biome-ignore lint/suspicious/noThenProperty: it is one that can be awaited
  then<Result = Value, Other = never>(
    onValue?: ((value: Value) => Result | PromiseLike<Result>) | null,
    onError?: ((error: unknown) => Other | PromiseLike<Other>) | null,
  ): Promise<Result | Other> {
    return new Promise<Value>((resolve, reject) => this.whenSettled(resolve, reject)).then(onValue, onError);
  }

  #forgetListeners(): void {
    this.#onValue = undefined;
    this.#onError = undefined;
    this.#owner = undefined;
    this.#others = undefined;
  }
}

/**
 * Calls a listener, and rethrows its exception in a microtask. So the exception affects neither the settling code nor
 * the other listeners.
 */
function notify<Outcome>(listener: (outcome: Outcome, owner: unknown) => void, outcome: Outcome, owner: unknown): void {
  try {
    listener(outcome, owner);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** Calls one of the two functions once a promise or deferred value is settled. */
export function whenSettled<Value>(
  eventual: MaybePromise<Value>,
  onValue: (value: Value) => void,
  onError: (error: unknown) => void,
): void;
export function whenSettled<Value, Owner>(
  eventual: MaybePromise<Value>,
  onValue: (value: Value, owner: Owner) => void,
  onError: (error: unknown, owner: Owner) => void,
  owner: Owner,
): void;
export function whenSettled<Value>(
  eventual: MaybePromise<Value>,
  onValue: Listener<Value>["onValue"],
  onError: Listener<Value>["onError"],
  owner?: unknown,
): void {
  if (eventual instanceof Deferred) {
    eventual.whenSettled(onValue, onError, owner);
  } else {
    eventual.then(
      (value) => onValue(value, owner),
      (error: unknown) => onError(error, owner),
    );
  }
}

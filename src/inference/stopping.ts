// Tells everything that is open that the server ends and can wait for it no longer.

/** An AbortSignal walks through all of its listeners for each new one: with thousands of open streams that is felt. */
export class Stopping {
  readonly #listeners = new Set<() => void>();
  #begun = false;

  get begun(): boolean {
    return this.#begun;
  }

  /** Once; each listener is called once. */
  begin(): void {
    this.#begun = true;
    for (const listener of this.#listeners) {
      this.#listeners.delete(listener);
      listener();
    }
  }

  /** `listener` is called at once where it has begun. */
  add(listener: () => void): void {
    if (this.#begun) listener();
    else this.#listeners.add(listener);
  }

  remove(listener: () => void): void {
    this.#listeners.delete(listener);
  }
}

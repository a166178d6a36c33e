// The one error of fetching models and installing back-ends: expected failures, with a text a person can act on.

/**
 * - `misuse`: the request itself is wrong (a malformed name, an unknown back-end).
 * - `network`: nobody answered, or the connection was lost; the machine may be offline.
 * - `busy`: the server asked to come back later.
 * - `failure`: everything else that another attempt will not mend.
 */
export type SetupErrorKind = "misuse" | "network" | "busy" | "failure";

export interface SetupErrorOptions {
  kind?: SetupErrorKind;
  /** Milliseconds that the server asked to wait before the next attempt. */
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** `message` is shown to the person as it is: it never holds a token, nor the query of a signed address. */
export class SetupError extends Error {
  override readonly name = "SetupError";
  readonly kind: SetupErrorKind;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: SetupErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = options.kind ?? "failure";
    this.retryAfterMs = options.retryAfterMs;
  }

  /** Whether the same attempt may succeed a little later. */
  get transient(): boolean {
    return this.kind === "network" || this.kind === "busy";
  }
}

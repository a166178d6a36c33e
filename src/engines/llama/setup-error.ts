// The error of model downloads and back-end installs. Its message tells the user what to do.

/**
 * The kind of a failure:
 * - `misuse`: the request itself is wrong (a malformed name, an unknown back-end).
 * - `network`: no answer, or the connection was lost; the machine may be offline.
 * - `busy`: the server asked to retry later.
 * - `failure`: everything else that a retry will not fix.
 */
export type SetupErrorKind = "misuse" | "network" | "busy" | "failure";

export interface SetupErrorOptions {
  kind?: SetupErrorKind;
  /** The delay that the server asked for before the next attempt, in milliseconds. */
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** A failure that is shown to the user. The message never contains a token or the query of a signed address. */
export class SetupError extends Error {
  override readonly name = "SetupError";
  readonly kind: SetupErrorKind;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: SetupErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = options.kind ?? "failure";
    this.retryAfterMs = options.retryAfterMs;
  }

  /** True if the same attempt may succeed later. */
  get transient(): boolean {
    return this.kind === "network" || this.kind === "busy";
  }
}

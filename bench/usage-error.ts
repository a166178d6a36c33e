// A command line that cannot be obeyed; the message says what it must be.

export class UsageError extends Error {
  override readonly name = "UsageError";
}

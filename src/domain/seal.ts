// The port that seals what a client keeps for us between two requests.

/** Seals what a client keeps for us, so that nobody else reads it, and nothing that is not ours is believed. */
export interface Seal {
  /** Base64url. */
  seal(text: string): string;
  /** Undefined where it is not ours. */
  open(sealed: string): string | undefined;
}

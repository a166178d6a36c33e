// The port that seals what a client keeps for us between two requests.

/** Seals what a client keeps for us, so that nobody else reads it, and nothing that is not ours is believed. */
export interface Seal {
  /** Base64url. */
  seal(text: string): string;
  /** Undefined where it is not ours. */
  open(sealed: string): string | undefined;
}

/** The seal of one place, such as a table and the id of a row: what was sealed for it opens nowhere else. */
export type SealFor = (place: string) => Seal;

/** The key of content, as it is kept: sealed under the installation's secret. */
export interface ContentKeyStore {
  find(): Promise<string | undefined>;
  /** Keeps it, unless there is one already; gives the one that there is then. */
  add(sealed: string): Promise<string>;
}

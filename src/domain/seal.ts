// The port that seals what a client keeps for us between two requests.

/** Seals what a client keeps for us, so that nobody else reads it, and nothing that is not ours is believed. */
export interface Seal {
  /** Base64url. */
  seal(text: string): string;
  /** Undefined where it is not ours. */
  open(sealed: string): string | undefined;
}

/** The seal of one account, which also knows names that stand for what its clients say of their users. */
export interface AccountSeal extends Seal {
  /**
   * What stands for `value` of this account at others: 43 characters of Base64url, the same each time, of which nobody else
   * knows what they stand for. The same value of another account, or of another `use`, has another one.
   */
  pseudonym(use: string, value: string): string;
}

/** The seal of one place, such as a table and the id of a row: what was sealed for it opens nowhere else. */
export type SealFor = (place: string) => Seal;

/** The key of content, as it is kept: sealed under the installation's secret. */
export interface ContentKeyStore {
  find(): Promise<string | undefined>;
  /** Keeps it, unless there is one already; gives the one that there is then. */
  add(sealed: string): Promise<string>;
}

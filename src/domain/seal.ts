// The port that seals values which a client keeps for the gateway between two requests.

/** Seals values so that only the gateway can read them, and detects values that it did not seal. */
export interface Seal {
  /** Base64url. */
  seal(text: string): string;
  /** Returns undefined for a text that this seal did not make. */
  open(sealed: string): string | undefined;
}

/** The seal of one account, which also makes pseudonyms for user ids. */
export interface AccountSeal extends Seal {
  /**
   * Returns a stable pseudonym for `value` of this account: 43 characters of Base64url that nobody else can resolve.
   * Another account or `use` has a different one.
   */
  pseudonym(use: string, value: string): string;
}

/** Makes the seal of one place, such as a table and a row's id. A sealed text opens only in its place. */
export type SealFor = (purpose: string) => Seal;

/** The store of the content key, sealed under the installation's secret. */
export interface ContentKeyStore {
  find(): Promise<string | undefined>;
  /** Stores the key unless one exists, and returns the stored one. */
  add(sealed: string): Promise<string>;
}

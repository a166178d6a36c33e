// Seals values that a client stores for the gateway between two requests. A seal encrypts and authenticates a value.

/** Seals values so that only the gateway can read them, and detects values that it did not seal. */
export interface Seal {
  /** Base64url. */
  seal(text: string): string;
  /** Returns the sealed text; undefined if this seal did not make it. */
  open(sealed: string): string | undefined;
}

/** The seal of one account, which also makes pseudonyms for user ids. */
export interface AccountSeal extends Seal {
  /**
   * Returns a stable pseudonym for `value`: 43 characters of Base64url that nobody else can trace back to the value.
   * Each account and each `use` has different pseudonyms.
   */
  pseudonym(use: string, value: string): string;
}

/**
 * Returns the seal for a purpose, such as a table and a row's id. A text can be opened only with the purpose with which
 * it was sealed.
 */
export type SealFor = (purpose: string) => Seal;

/** Stores the key that encrypts contents. The key itself is sealed under the installation's secret. */
export interface ContentKeyStore {
  find(): Promise<string | undefined>;
  /** Stores the key, unless one is stored already. Returns the stored key. */
  add(sealed: string): Promise<string>;
}

// The result of reading a secret, and the state of a secret in use.

export type SecretRead = { ok: true; value: string } | { ok: false; message: string; fix: string };

/** The state of one secret. No part of it holds the value. */
export interface SecretState {
  /** The reference, such as `file:/run/secrets/openai` or `vault:secret/data/openai#key`. */
  name: string;
  /** Seconds since the value in use was last read. */
  ageSeconds: number;
  /** The reason why the value in use is old; undefined if the last read succeeded. */
  failure: string | undefined;
}

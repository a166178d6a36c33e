// Creates join tokens, and the digests under which they are stored.

import { randomBase62 } from "../domain/api-key.ts";
import { type Keys, keyRing } from "../domain/key-ring.ts";

const prefix = "hrn_";
const randomLength = 32;
const pattern = /^hrn_[0-9A-Za-z]{32}$/;

/** Creates a join token: a prefix, and 190 random bits. The prefix helps people and secret scanners to recognize it. */
export function newJoinToken(): string {
  return prefix + randomBase62(randomLength);
}

/**
 * Returns the digest of a join token: a hex HMAC-SHA-256 with a secret key, so that a stolen database does not help to
 * guess tokens. Returns undefined if the text is no join token.
 */
export function joinTokenDigest(token: string, keys: Keys): string | undefined {
  return joinTokenDigests(token, keys)?.[0];
}

/** Returns the digests of a join token with all keys, the current one first. */
export function joinTokenDigests(token: string, keys: Keys): readonly string[] | undefined {
  if (!pattern.test(token)) return undefined;
  return keyRing(keys).map((key) => new Bun.CryptoHasher("sha256", key).update(token).digest("hex"));
}

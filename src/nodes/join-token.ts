// The text of join tokens, and what is stored of it.

import { randomBase62 } from "../domain/api-key.ts";
import { type Keys, keyRing } from "../domain/key-ring.ts";

const prefix = "hrn_";
const randomLength = 32;
const pattern = /^hrn_[0-9A-Za-z]{32}$/;

/**
 * Creates a join token: a secret of 190 random bits. The prefix tells people, and scanners for leaked secrets, what it
 * is.
 */
export function newJoinToken(): string {
  return prefix + randomBase62(randomLength);
}

/**
 * Returns the digest of a join token: hex HMAC-SHA-256 under a key of the installation, so that a stolen database
 * cannot be searched offline. Undefined if the text is not a join token. A look-up by digest reveals nothing about
 * tokens through its timing.
 */
export function joinTokenDigest(token: string, keys: Keys): string | undefined {
  return joinTokenDigests(token, keys)?.[0];
}

/** Returns the digests of a join token under the current key and under older ones. */
export function joinTokenDigests(token: string, keys: Keys): readonly string[] | undefined {
  if (!pattern.test(token)) return undefined;
  return keyRing(keys).map((key) => new Bun.CryptoHasher("sha256", key).update(token).digest("hex"));
}

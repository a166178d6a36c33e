// Computes the digests of API keys by which keys are stored and found.

/**
 * Returns the hex HMAC-SHA-256 of the whole key under the installation's pepper, so that a stolen database cannot be
 * searched offline.
 */
export function keyDigest(key: string, pepper: Uint8Array): string {
  return new Bun.CryptoHasher("sha256", pepper).update(key).digest("hex");
}

/** Returns the SHA-256 of a key, which caches use as the key's name so that no cache contains the key itself. */
export function memoryIndex(key: string): string {
  return Bun.SHA256.hash(key, "hex");
}

// How an API key is turned into what is stored and looked up.

/** Hex HMAC-SHA-256 of the whole key under the installation's pepper: a stolen database cannot be searched offline. */
export function keyDigest(key: string, pepper: Uint8Array): string {
  return new Bun.CryptoHasher("sha256", pepper).update(key).digest("hex");
}

/**
 * Under which a key is remembered in this process, so that a look into its memory finds no key: SHA-256, which costs a
 * third of the HMAC. Without a pepper anybody can compute it of a guess, but of 178 random bits there is no guessing,
 * and what a map's look-up may tell of a digest by its time brings nobody closer to the key.
 */
export function memoryIndex(key: string): string {
  return Bun.SHA256.hash(key, "hex");
}

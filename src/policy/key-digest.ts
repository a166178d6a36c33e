// How an API key is turned into what is stored and looked up.

/** Hex HMAC-SHA-256 of the whole key under the installation's pepper: a stolen database cannot be searched offline. */
export function keyDigest(key: string, pepper: Uint8Array): string {
  return new Bun.CryptoHasher("sha256", pepper).update(key).digest("hex");
}

// How an API key is turned into what is stored and looked up.

/** Hex HMAC-SHA-256 of the whole key under the installation's pepper: a stolen database cannot be searched offline. */
export function keyDigest(key: string, pepper: Uint8Array): string {
  return new Bun.CryptoHasher("sha256", pepper).update(key).digest("hex");
}

/** Names a key where it is looked for, so that no memory of that has a key in it; as `SecretMap`, SHA-256. */
export function memoryIndex(key: string): string {
  return Bun.SHA256.hash(key, "hex");
}

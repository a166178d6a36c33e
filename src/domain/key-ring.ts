// Encryption keys for one purpose while their secret is being replaced. The current key seals new values; older keys
// still open existing values.

/** The first key seals new values. */
export type KeyRing = readonly [current: Uint8Array, ...older: Uint8Array[]];

/** One key, or several while a secret is being replaced. */
export type Keys = Uint8Array | KeyRing;

export function keyRing(keys: Keys): KeyRing {
  return keys instanceof Uint8Array ? [keys] : keys;
}

export function currentKey(keys: Keys): Uint8Array {
  return keyRing(keys)[0];
}

/** Returns the key ring that `make` derives, key by key. */
export function mapKeys(keys: Keys, make: (key: Uint8Array) => Uint8Array): KeyRing {
  const [current, ...older] = keyRing(keys);
  return [make(current), ...older.map(make)];
}

// Keys for one purpose while their secret is being replaced: the current key seals new values, older ones still open
// existing values.

/** The first is the one in use. */
export type KeyRing = readonly [current: Uint8Array, ...older: Uint8Array[]];

/** A single key is a ring of one. */
export type Keys = Uint8Array | KeyRing;

export function keyRing(keys: Keys): KeyRing {
  return keys instanceof Uint8Array ? [keys] : keys;
}

export function currentKey(keys: Keys): Uint8Array {
  return keyRing(keys)[0];
}

/** Makes a ring of the results of `make`. */
export function mapKeys(keys: Keys, make: (key: Uint8Array) => Uint8Array): KeyRing {
  const [current, ...older] = keyRing(keys);
  return [make(current), ...older.map(make)];
}

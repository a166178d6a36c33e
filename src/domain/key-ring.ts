// Keys for one purpose while the secret behind them is replaced: one makes what is new, older ones still open what there is.

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

/** A ring of what is made of each. */
export function mapKeys(keys: Keys, make: (key: Uint8Array) => Uint8Array): KeyRing {
  const [current, ...older] = keyRing(keys);
  return [make(current), ...older.map(make)];
}

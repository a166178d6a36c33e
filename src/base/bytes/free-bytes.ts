// Frees memory immediately: the collector runs long after a large, short-lived buffer is no longer used.

/** Frees the memory of `bytes`, which must not be used again. Memory shared with others is left alone. */
export function freeBytes(bytes: Buffer): void {
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length) buffer.transfer(0);
}

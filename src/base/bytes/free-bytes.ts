// Frees memory immediately. The garbage collector would free a large, short-lived buffer much later.

/** Frees the memory of `bytes`, which must not be used again. Memory that other buffers share is not freed. */
export function freeBytes(bytes: Buffer): void {
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length) buffer.transfer(0);
}

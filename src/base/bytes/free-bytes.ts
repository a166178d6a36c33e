// Gives memory back at once: the collector runs long after what was large and short-lived is over.

/**
 * Gives the memory of `bytes` back: nothing may refer to them any more. Memory that is shared with others is left
 * alone.
 */
export function freeBytes(bytes: Buffer): void {
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length) buffer.transfer(0);
}

// Gives memory back at once: the collector runs long after what was large and short-lived is over.

/** Nobody may lead to `bytes` any more: they are gone. What shares its memory with others is left alone. */
export function freeBytes(bytes: Buffer): void {
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length) buffer.transfer(0);
}

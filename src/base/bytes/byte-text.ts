// Bytes stored as text with one character for each (`latin1`), so that they can be compared, cut and joined without
// decoding.
import type { ByteSpan } from "./byte-span.ts";

const nonAscii = /[\u0080-\uffff]/;

export function byteTextOf({ buffer, start, end }: ByteSpan): string {
  return buffer.toString("latin1", start, end);
}

/** Decodes the bytes as UTF-8, with U+FFFD for invalid bytes. A byte-order mark stays. */
export function decodeByteText(bytes: string): string {
  return nonAscii.test(bytes) ? Buffer.from(bytes, "latin1").toString("utf8") : bytes;
}

/** Encodes a text as UTF-8. */
export function encodeByteText(text: string): string {
  return nonAscii.test(text) ? Buffer.from(text, "utf8").toString("latin1") : text;
}

/**
 * Returns the same text without a reference to the longer text that it was cut from. Otherwise engines would keep the
 * longer text in memory.
 */
export function detachedByteText(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("latin1");
}

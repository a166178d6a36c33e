// Bytes kept as text with one character for each (`latin1`): compared, cut and joined without being decoded.
import type { ByteSpan } from "./byte-span.ts";

const nonAscii = /[\u0080-\uffff]/;

export function byteTextOf({ buffer, start, end }: ByteSpan): string {
  return buffer.toString("latin1", start, end);
}

/** The text that the bytes mean as UTF-8; U+FFFD for what is none. A byte-order mark stays. */
export function decodeByteText(bytes: string): string {
  return nonAscii.test(bytes) ? Buffer.from(bytes, "latin1").toString("utf8") : bytes;
}

/** The UTF-8 of a text. */
export function encodeByteText(text: string): string {
  return nonAscii.test(text) ? Buffer.from(text, "utf8").toString("latin1") : text;
}

/** The same text, without the longer one that it was cut from: engines keep that in memory for as long as the cut. */
export function detachedByteText(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("latin1");
}

// Reads the kind of a JSON value from its first byte.
import { bytes } from "../../base/text/json-bytes.ts";
import { arrayKind, falseKind, noKind, nullKind, numberKind, objectKind, textKind, trueKind } from "./rule.ts";

const kinds = new Uint8Array(256).fill(noKind);
for (const [characters, kind] of [
  ['"', textKind],
  ["-0123456789", numberKind],
  ["{", objectKind],
  ["[", arrayKind],
  ["t", trueKind],
  ["f", falseKind],
  ["n", nullKind],
] as const) {
  for (const character of characters) kinds[character.charCodeAt(0)] = kind;
}

/** Returns the kind of the JSON value that begins at offset `at`. */
export function kindAt(at: number): number {
  return kinds[bytes[at] as number] as number;
}

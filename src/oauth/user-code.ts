// Codes that a person types to connect a device (RFC 8628, 6.1).
import { randomInt } from "node:crypto";

/** The letters of codes: no vowels, so that no words appear; no digits, which could be mistaken for letters. */
const alphabet = "BCDFGHJKLMNPQRSTVWXZ";
const half = 4;
const length = 2 * half;
/** The separators between letters: a person may type other spaces and dashes than were shown. */
const separators = /[\s\p{Pd}._]+/gu;
const maxInputLength = 64;
const pattern = new RegExp(`^[${alphabet}]{${length}}$`);

/** Returns a code as shown, `XXXX-XXXX`: one of 20^8, all equally likely. */
export function newUserCode(): string {
  const letters = Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join("");
  return `${letters.slice(0, half)}-${letters.slice(half)}`;
}

/** Returns a code as stored and looked up: only its letters. Undefined if it cannot be a code. */
export function normalizedUserCode(text: string): string | undefined {
  if (text.length > maxInputLength) return undefined;
  const letters = text.replace(separators, "").toUpperCase();
  return pattern.test(letters) ? letters : undefined;
}

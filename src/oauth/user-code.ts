// Codes that a person types to connect a device (RFC 8628, 6.1).
import { randomInt } from "node:crypto";

/** No vowels, so no words; no digits, so none is mistaken for a letter. */
const alphabet = "BCDFGHJKLMNPQRSTVWXZ";
const half = 4;
const length = 2 * half;
/** Separators between the letters: a person may type other spaces and dashes than were shown. */
const separators = /[\s\p{Pd}._]+/gu;
const maxInputLength = 64;
const pattern = new RegExp(`^[${alphabet}]{${length}}$`);

/** A code as shown, `XXXX-XXXX`: one of 20^8, all equally likely. */
export function newUserCode(): string {
  const letters = Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join("");
  return `${letters.slice(0, half)}-${letters.slice(half)}`;
}

/** The code as stored and looked up: only its letters. Undefined if it cannot be a code. */
export function normalizedUserCode(text: string): string | undefined {
  if (text.length > maxInputLength) return undefined;
  const letters = text.replace(separators, "").toUpperCase();
  return pattern.test(letters) ? letters : undefined;
}

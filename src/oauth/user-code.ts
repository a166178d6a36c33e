// Codes that a person types to connect a device (RFC 8628, 6.1).
import { randomInt } from "node:crypto";

/** No vowels, so no words; no digits, so nothing is mistaken for a letter. */
const alphabet = "BCDFGHJKLMNPQRSTVWXZ";
const half = 4;
const length = 2 * half;
/** What people put between the letters: a person may type the code with other blanks and dashes than it was shown with. */
const separators = /[\s\p{Pd}._]+/gu;
const maxInputLength = 64;
const pattern = new RegExp(`^[${alphabet}]{${length}}$`);

/** A code as it is shown, `XXXX-XXXX`: 20^8 of them, each as likely as any other. */
export function newUserCode(): string {
  const letters = Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join("");
  return `${letters.slice(0, half)}-${letters.slice(half)}`;
}

/** The code as it is kept and looked for: the letters alone. Undefined for what cannot be a code. */
export function normalizedUserCode(text: string): string | undefined {
  if (text.length > maxInputLength) return undefined;
  const letters = text.replace(separators, "").toUpperCase();
  return pattern.test(letters) ? letters : undefined;
}

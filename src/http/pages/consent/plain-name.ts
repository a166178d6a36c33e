// Makes untrusted names safe to show on a page.
const maxNameLength = 60;
/**
 * Characters to remove. U+2800, the empty Braille cell, is listed because it looks blank, but Unicode does not classify
 * it as blank.
 */
const unsafeCharacters = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]+/gu;
const piledMarks = /(\p{M}{2})\p{M}+/gu;

/**
 * Returns an untrusted name as one short line. Characters that are invisible, change the text direction or affect other
 * lines are removed.
 */
export function plainName(name: string): string {
  const plain = name.normalize("NFC").replace(unsafeCharacters, " ").replace(piledMarks, "$1");
  const letters = [...plain.replace(/\s+/gu, " ").trim()];
  return letters.length > maxNameLength ? `${letters.slice(0, maxNameLength - 1).join("")}…` : letters.join("");
}

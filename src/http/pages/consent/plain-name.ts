// Names that others chose, made so that a page can show them.
const maxNameLength = 60;
/** U+2800, a Braille cell without a dot, is a blank that Unicode does not count as one. */
const unsafeCharacters = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]+/gu;
const piledMarks = /(\p{M}{2})\p{M}+/gu;

/**
 * A name that somebody else chose, so that it cannot pass for more than a name: one line of bounded length, without
 * characters that are unseen, turn the text around, or reach into other lines.
 */
export function plainName(name: string): string {
  const plain = name.normalize("NFC").replace(unsafeCharacters, " ").replace(piledMarks, "$1");
  const letters = [...plain.replace(/\s+/gu, " ").trim()];
  return letters.length > maxNameLength ? `${letters.slice(0, maxNameLength - 1).join("")}…` : letters.join("");
}

// Finds characters in a text that are invisible to people, although a model reads them.

export interface Seen {
  text: string;
  /** True for an invisible character; `text` is then its name, such as U+200B. */
  isHidden: boolean;
}

/** Matches a whole emoji, or one hidden character. Hidden characters within an emoji are legitimate. */
const emojiOrHidden =
  /\p{Extended_Pictographic}\u{FE0F}?(?:\u{200D}\p{Extended_Pictographic}\u{FE0F}?)*|[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const usual = new Set(["\n", "\t"]);

/** Splits the text into visible and invisible pieces, in order. */
export function seenOf(text: string): Seen[] {
  const pieces: Seen[] = [];
  let from = 0;
  for (const { 0: found, index } of text.matchAll(emojiOrHidden)) {
    if (usual.has(found) || /^\p{Extended_Pictographic}/u.test(found)) continue;
    if (index > from) pieces.push({ text: text.slice(from, index), isHidden: false });
    pieces.push({ text: nameOf(found), isHidden: true });
    from = index + found.length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), isHidden: false });
  return pieces;
}

function nameOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

// Decides which tool names are allowed. An operator who approves a tool must be able to read its name and tell it from
// others.

const maxNameLength = 256;

/** Reports whether all characters of the name are visible, and none imitates a letter of another script. */
export function isPlainName(name: string): boolean {
  const isVisible = name !== "" && name.length <= maxNameLength && name.isWellFormed() && !/\p{C}/u.test(name);
  return isVisible && alike.filter((script) => script.test(name)).length <= 1;
}

/** Scripts with letters that look like letters of another script, so that a mixed name could imitate another name. */
const alike = [
  /\p{Script=Latin}/u,
  /\p{Script=Cyrillic}/u,
  /\p{Script=Greek}/u,
  /\p{Script=Armenian}/u,
  /\p{Script=Cherokee}/u,
  /\p{Script=Coptic}/u,
  /\p{Script=Lisu}/u,
];

/**
 * Returns a text that is equal for names that look alike: they differ only in case, composition or invisible
 * characters.
 */
export function appearanceOf(name: string): string {
  return name
    .normalize("NFKC")
    .replace(/[\p{C}\p{M}\s]/gu, "")
    .toLowerCase();
}

// Which names of tools may be offered: a person who approves one has to see what it is, and which one.

const maxNameLength = 256;

/** What cannot be seen has no place in a name, nor has what cannot be told from something else. */
export function isPlainName(name: string): boolean {
  const isVisible = name !== "" && name.length <= maxNameLength && name.isWellFormed() && !/\p{C}/u.test(name);
  return isVisible && alike.filter((script) => script.test(name)).length <= 1;
}

/** Scripts with letters that look like those of another one: a name that mixes them is meant to be read as what it is not. */
const alike = [
  /\p{Script=Latin}/u,
  /\p{Script=Cyrillic}/u,
  /\p{Script=Greek}/u,
  /\p{Script=Armenian}/u,
  /\p{Script=Cherokee}/u,
  /\p{Script=Coptic}/u,
  /\p{Script=Lisu}/u,
];

/** Names that only differ in how their characters are made up, in case or in what cannot be seen, look the same. */
export function lookOf(name: string): string {
  return name
    .normalize("NFKC")
    .replace(/[\p{C}\p{M}\s]/gu, "")
    .toLowerCase();
}

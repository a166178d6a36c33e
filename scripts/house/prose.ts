// Comments and names of tests read by themselves: neither begins as the second half of a sentence.
import { lineAt, type SourceFile } from "./imports.ts";

/** Openings of comments that leave out their noun. A line of a `//` comment that goes on is no opening, nor is a string. */
const headlessComment =
  /(?<=^[^\S\n]*|[;,{}()[\]>=][^\S\n]*)(?:(?<!^[^\S\n]*\/\/[^\n]*\n[^\S\n]*)\/\/|\/\*\*?(?:\s*\*)?)\s*(Of|As|Nor|And|Or|Null:|None:)[\s,]/gm;

const halfName = /\b(?:test|it|describe)(?:\.\w+(?:\([^()\n]*\))?)*\(\s*["'`](nor|and|but|or)\b/gi;

/** One line for each such comment or name, but in rooms with as many as `owing` grants them for now. */
export function checkProse(files: readonly SourceFile[], owing: Readonly<Record<string, number>>): string[] {
  const rooms = new Map<string, string[]>(Object.keys(owing).map((room) => [room, []]));
  for (const file of files) {
    const room = file.path.split("/").slice(0, -1).slice(0, 2).join("/");
    const found = findings(file);
    if (found.length > 0) rooms.set(room, [...(rooms.get(room) ?? []), ...found]);
  }
  return [...rooms].flatMap(([room, found]) => {
    const granted = owing[room] ?? 0;
    if (found.length > granted) return found;
    // What was won is kept.
    if (found.length < granted)
      return `${room}: has ${found.length} headless comments and names: its grant of ${granted} in scripts/house/owed.ts goes down to that.`;
    return [];
  });
}

function findings({ path, text }: SourceFile): string[] {
  const all = (pattern: RegExp, rule: string) =>
    [...text.matchAll(pattern)].map(
      ({ 0: whole, 1: word, index }) =>
        `${path}:${lineAt(text, index + whole.trimEnd().length)}: begins with "${word}": ${rule}`,
    );
  return [
    ...all(headlessComment, "a comment is a whole sentence, or a noun phrase that reads by itself."),
    ...all(halfName, "the name of a test is a whole sentence, which reads without those beside it."),
  ];
}

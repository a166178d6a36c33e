// Measures comments: how many open with a word that openings.txt does not list, and how many consist of pronouns.
import type { SourceFile } from "./imports.ts";

/** Counts of one room. */
export interface CommentFaults {
  /** Comments that open without a subject or a verb. */
  openings: number;
  /** Comments of which 30 % or more of the words are pronouns. */
  pronouns: number;
}

/** What tools read, and marks of tests that docs/reference/hardening.md lists. */
const directive = /^(?:biome-ignore|@ts-|@type|#__|\/ <reference|hardening: )/;

interface Comment {
  line: number;
  text: string;
}

const pronouns = new Set(
  "it its itself that those this these they them their what which who whom whose whoever one ones other others another such same all none nobody somebody nothing something there".split(
    " ",
  ),
);
const minPronounShare = 0.3;
/** A shorter comment says too little to be judged by its share of pronouns. */
const minWords = 5;

/** A comment, or what else may hold the signs of one: templates, strings and regular expressions. */
const commentOrText =
  /`(?:\\[\s\S]|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}|[^`\\])*`|"(?:\\.|[^"\\\n])*"|(?<![A-Za-z])'(?:\\.|[^'\\\n])*'|\/\*[\s\S]*?\*\/|(?<!:)\/\/[^\n]*|(?<=[(,=:[!&|?{};>]\s*|return\s+|^\s*)\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*/gm;

/** The comments of a file; the lines of one `//` comment are one. Directives of tools are none. */
export function commentsOf(text: string): Comment[] {
  const lines = text.split("\n");
  const found: (Comment & { end: number; isLine: boolean })[] = [];
  let [line, offset] = [1, 0];
  for (const { 0: whole, index } of text.matchAll(commentOrText)) {
    line += linesIn(text.slice(offset, index));
    offset = index;
    const isLine = whole.startsWith("//");
    if (!isLine && !whole.startsWith("/*")) continue;
    const said = (isLine ? whole.slice(2) : whole.slice(2, -2)).replace(/^\s*\* ?/gm, "").trim();
    if (said === "" || directive.test(said)) continue;
    const last = found.at(-1);
    if (isLine && last?.isLine && last.end === line - 1 && lines[line - 1]?.trimStart().startsWith("//")) {
      last.text += ` ${said}`;
      last.end = line;
    } else found.push({ line, end: line + linesIn(whole), isLine, text: said });
  }
  return found;
}

function linesIn(text: string): number {
  return text.split("\n").length - 1;
}

/** The first word; undefined for a comment that opens with a name in backticks, a figure or a sign. */
export function openingOf(comment: string): string | undefined {
  return /^[A-Za-z][A-Za-z'’-]*(?![\w(.])/.exec(comment)?.[0];
}

export function isDensePronouns(comment: string): boolean {
  const words = comment.toLowerCase().match(/[a-z][a-z'-]*/g) ?? [];
  const count = words.filter((word) => pronouns.has(word)).length;
  return words.length >= minWords && count / words.length >= minPronounShare;
}

/** Faults as lines that name the place. */
export function commentFaults(
  file: Pick<SourceFile, "text" | "path">,
  openings: ReadonlySet<string>,
): Record<keyof CommentFaults, string[]> {
  const comments = commentsOf(file.text);
  const at = ({ line, text }: Comment) => `${file.path}:${line}: ${text.slice(0, 80).replaceAll("\n", " ")}`;
  return {
    openings: comments.filter(({ text }) => isUnlisted(openingOf(text), openings)).map(at),
    pronouns: comments.filter(({ text }) => isDensePronouns(text)).map(at),
  };
}

function isUnlisted(word: string | undefined, openings: ReadonlySet<string>): boolean {
  return word !== undefined && !openings.has(word.toLowerCase());
}

/** Lines that name faults, by kind. */
export type FoundFaults = Readonly<Record<keyof CommentFaults, readonly string[]>>;

/** The faults of each room: the folder of a file, three levels deep. */
export function countedRooms(files: readonly SourceFile[], openings: ReadonlySet<string>): Map<string, FoundFaults> {
  const rooms = new Map<string, FoundFaults>();
  for (const file of files) {
    const room = file.path.split("/").slice(0, -1).slice(0, 3).join("/");
    const faults = commentFaults(file, openings);
    const sum = rooms.get(room);
    rooms.set(room, {
      openings: [...(sum?.openings ?? []), ...faults.openings],
      pronouns: [...(sum?.pronouns ?? []), ...faults.pronouns],
    });
  }
  return rooms;
}

const faultNames: Readonly<Record<keyof CommentFaults, string>> = {
  openings: "comments that open with a word that scripts/house/openings.txt does not list",
  pronouns: "comments of which 30 % or more are pronouns",
};

/** Lines for each room with more faults than `owing` grants, and for each grant that is higher than needed. */
export function checkComments(
  rooms: ReadonlyMap<string, FoundFaults>,
  owing: ReadonlyMap<string, CommentFaults>,
): string[] {
  const names = new Set([...rooms.keys(), ...owing.keys()]);
  return [...names].flatMap((room) =>
    (["openings", "pronouns"] as const).flatMap((kind) => {
      const found = rooms.get(room)?.[kind] ?? [];
      const granted = owing.get(room)?.[kind] ?? 0;
      if (found.length === granted) return [];
      const counted = `${room}: ${found.length} ${faultNames[kind]}`;
      return found.length > granted
        ? [`${counted}; at most ${granted} are granted:`, ...found.map((one) => `  ${one}`)]
        : [`${counted}, fewer than the ${granted} granted: lower the grant with npm run check -- --write.`];
    }),
  );
}

/** Reads grants: a room, its openings and its pronouns a line. */
export function readGrants(text: string): Map<string, CommentFaults> {
  const rows = text.split("\n").filter(Boolean);
  return new Map(
    rows.map((row) => {
      const [room = "", openings, pronounCount] = row.split(" ");
      return [room, { openings: Number(openings), pronouns: Number(pronounCount) }];
    }),
  );
}

/** Writes grants as `readGrants` reads them, without rooms that have none. */
export function grantsText(grants: ReadonlyMap<string, CommentFaults>): string {
  return [...grants]
    .filter(([, { openings, pronouns: count }]) => openings + count > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([room, { openings, pronouns: count }]) => `${room} ${openings} ${count}\n`)
    .join("");
}

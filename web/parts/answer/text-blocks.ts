// Splits an answer into blocks by CommonMark and GitHub's tables; HTML stays text.

export type BlockKind = "text" | "code" | "heading" | "list" | "table" | "quote" | "rule";

export interface Block {
  kind: BlockKind;
  /** The text without the marks of a heading, quote or fence. */
  text: string;
  /** The language of a code block from its fence; else empty. */
  language: string;
  /** The level of a heading, from 1 to 6; else 0. */
  level: number;
  /** The position of the first line, which identifies the block while the text grows. */
  at: number;
}

const fenceMark = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})\s*([^\s`]*)/;
const itemMark = /^ *(?:[-*+]|\d{1,9}[.)])(?: |$)/;

/** Splits a text into blocks. An open code fence reaches to the end, because the answer may still be streaming. */
export function blocksOf(text: string): Block[] {
  return new BlockReader().read(text);
}

/** Parses a growing text; finished blocks are not parsed again. */
export class BlockReader {
  #text = "";
  #blocks: Block[] = [];

  read(text: string): Block[] {
    const last = this.#blocks.at(-1);
    const goesOn = last !== undefined && text.startsWith(this.#text);
    const kept = goesOn ? this.#blocks.slice(0, -1) : [];
    this.#blocks = [...kept, ...new Division(text, goesOn ? last.at : 0).blocks()];
    this.#text = text;
    return this.#blocks;
  }
}

class Division {
  readonly #text: string;
  readonly #blocks: Block[] = [];
  #at: number;
  /** The lines of the current block. */
  #lines: string[] = [];
  #kind: BlockKind = "text";
  #start = 0;
  #blanks = 0;

  constructor(text: string, from: number) {
    this.#text = text;
    this.#at = from;
  }

  blocks(): Block[] {
    while (this.#at <= this.#text.length) {
      const start = this.#at;
      this.#take(this.#line(), start);
    }
    this.#close();
    return this.#blocks;
  }

  #line(): string {
    const end = this.#text.indexOf("\n", this.#at);
    const line = this.#text.slice(this.#at, end < 0 ? undefined : end);
    this.#at = end < 0 ? this.#text.length + 1 : end + 1;
    return line;
  }

  #take(line: string, start: number): void {
    const [, mark, language = ""] = fenceMark.exec(line) ?? [];
    const heading = headingOf(line);
    if (mark !== undefined) this.#code(mark, language, start);
    else if (line.trim() === "") {
      // An empty line may stand between a list's items.
      if (this.#kind === "list") this.#blanks++;
      else this.#close();
    } else if (heading) this.#whole({ kind: "heading", language: "", ...heading, at: start });
    else if (isRule(line)) this.#whole({ kind: "rule", text: "", language: "", level: 0, at: start });
    else if (line.trimStart().startsWith(">")) this.#add("quote", line.trimStart().slice(1).replace(/^ /, ""), start);
    else if (this.#isOfList(line)) this.#add("list", line, start);
    else this.#addText(line, start);
  }

  #addText(line: string, start: number): void {
    if (this.#kind === "text" && this.#lines.length === 1 && isTableRule(line) && this.#lines[0]?.includes("|")) {
      this.#kind = "table";
    }
    this.#add(this.#kind === "table" && line.includes("|") ? "table" : "text", line, start);
  }

  #isOfList(line: string): boolean {
    if (itemMark.test(line)) return this.#kind === "list" || !/^ {4}/.test(line);
    // A continuation line is indented below its item, or follows without an empty line.
    return this.#kind === "list" && (this.#blanks === 0 || line.startsWith("  "));
  }

  #add(kind: BlockKind, line: string, start: number): void {
    if (kind !== this.#kind || this.#lines.length === 0) {
      this.#close();
      this.#kind = kind;
      this.#start = start;
    }
    for (; this.#blanks > 0; this.#blanks--) this.#lines.push("");
    this.#lines.push(line);
  }

  #code(mark: string, language: string, start: number): void {
    this.#close();
    const lines: string[] = [];
    while (this.#at <= this.#text.length) {
      const line = this.#line();
      const bare = line.trim();
      if (bare.length >= mark.length && bare === (mark[0] ?? "").repeat(bare.length)) break;
      lines.push(line);
    }
    this.#blocks.push({ kind: "code", text: lines.join("\n"), language, level: 0, at: start });
  }

  #whole(block: Block): void {
    this.#close();
    this.#blocks.push(block);
  }

  #close(): void {
    const text = this.#lines.join("\n");
    if (text.trim() !== "") this.#blocks.push({ kind: this.#kind, text, language: "", level: 0, at: this.#start });
    this.#lines = [];
    this.#kind = "text";
    this.#blanks = 0;
  }
}

function headingOf(line: string): { text: string; level: number } | undefined {
  const [marks = "", hashes = ""] = /^ {0,3}(#{1,6})(?= |$)/.exec(line) ?? [];
  return hashes === "" ? undefined : { text: line.slice(marks.length).trim(), level: hashes.length };
}

function isRule(line: string): boolean {
  const marks = line.replaceAll(" ", "");
  return marks.length >= 3 && "-*_".includes(marks[0] ?? " ") && marks === (marks[0] ?? "").repeat(marks.length);
}

/** Reports whether a line is the delimiter row of a table. */
function isTableRule(line: string): boolean {
  return line.includes("|") && cellsOf(line).every((cell) => /^:?-+:?$/.test(cell));
}

/** Returns the cells of a table row; an escaped bar belongs to its cell. */
export function cellsOf(line: string): string[] {
  const bare = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return bare.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

export interface Item {
  /** The item's line number within the list. */
  at: number;
  text: string;
  /** The number of a numbered item; undefined for a bullet. */
  number: number | undefined;
  items: Item[];
}

const deepest = 8;

/** Returns the items of a list; deeper indented items become children of the item before them. */
export function itemsOf(text: string): Item[] {
  const top: Item[] = [];
  const open: { indent: number; item: Item }[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    const [mark, indent = "", number] = /^( *)(?:[-*+]|(\d{1,9})[.)])(?: +|$)/.exec(line) ?? [];
    if (mark === undefined) {
      const last = open.at(-1)?.item;
      if (last) last.text += `\n${line.trim()}`;
      continue;
    }
    const item: Item = {
      at,
      text: line.slice(mark.length),
      number: number === undefined ? undefined : Number(number),
      items: [],
    };
    while (open.length > 0 && (open.at(-1)?.indent ?? 0) >= indent.length) open.pop();
    const parent = open.length < deepest ? open.at(-1)?.item : open[deepest - 1]?.item;
    (parent?.items ?? top).push(item);
    open.push({ indent: indent.length, item });
  }
  return top;
}

// Parses inline Markdown: bold, italic, strikethrough, code and links. Each character is visited a bounded number of
// times.

interface Within {
  /** The end position, which serves as the React key. */
  at: number;
}
interface Words extends Within {
  kind: "text" | "code";
  text: string;
}
interface Marked extends Within {
  kind: "strong" | "em" | "del";
  parts: Inline[];
}
interface Link extends Within {
  kind: "link";
  href: string;
  parts: Inline[];
}
export type Inline = Words | Marked | Link;

type Mark = "**" | "__" | "~~" | "*" | "_";
const kinds = { "**": "strong", __: "strong", "~~": "del", "*": "em", _: "em" } as const satisfies Record<Mark, string>;

/** Maximum nesting of marks such as `**`. Further marks stay literal. */
const deepest = 12;
/** The characters that a backslash escapes. */
const escapable = /[\\`*_~[\]()#+\-.!|>]/;
const address = /https?:\/\/[^\s<>"'`\])}|]{1,500}/y;
/** Links lead to http, https and mailto only: never to scripts or this server's own paths. */
const target = /\]\(((?:https?:\/\/|mailto:)[^\s()<>]{1,500})\)/y;

interface Open {
  at: number;
  mark: Mark | "[";
  parts: Inline[];
}

export function inlineOf(text: string): Inline[] {
  return new Reader(text).read();
}

class Reader {
  readonly #text: string;
  readonly #codeEnds: ReadonlyMap<number, number>;
  readonly #open: Open[] = [];
  readonly #top: Inline[] = [];
  #at = 0;
  #plain = "";

  constructor(text: string) {
    this.#text = text;
    this.#codeEnds = codeEndsOf(text);
  }

  read(): Inline[] {
    while (this.#at < this.#text.length) this.#step();
    while (this.#open.length > 0) this.#giveUpLast();
    this.#flush();
    return this.#top;
  }

  #step(): void {
    const char = this.#text[this.#at] ?? "";
    if (char === "\\" && escapable.test(this.#text[this.#at + 1] ?? "")) {
      this.#plain += this.#text[this.#at + 1] ?? "";
      this.#at += 2;
    } else if (char === "`") this.#code();
    else if (char === "[") this.#begin("[", 1);
    else if (char === "]" && this.#link()) return;
    else if (char === "h" && this.#bareAddress()) return;
    else if (char === "*" || char === "_" || char === "~") this.#mark(char);
    else {
      this.#plain += char;
      this.#at += 1;
    }
  }

  #code(): void {
    const end = this.#codeEnds.get(this.#at);
    const run = /`+/y;
    run.lastIndex = this.#at;
    const ticks = run.exec(this.#text)?.[0] ?? "`";
    if (end === undefined) {
      this.#plain += ticks;
      this.#at += ticks.length;
      return;
    }
    const inner = this.#text.slice(this.#at + ticks.length, end);
    this.#put({
      kind: "code",
      at: end,
      text: inner.length > 2 && inner.startsWith(" ") && inner.endsWith(" ") ? inner.slice(1, -1) : inner,
    });
    this.#at = end + ticks.length;
  }

  #mark(char: string): void {
    const double = this.#text.startsWith(char + char, this.#at);
    const mark = (double ? char + char : char) as Mark | "~";
    if (mark === "~") {
      this.#plain += mark;
      this.#at += 1;
      return;
    }
    const before = this.#text[this.#at - 1] ?? " ";
    const after = this.#text[this.#at + mark.length] ?? " ";
    // An underscore within a word is literal, as in a variable's name.
    const isInWord = char === "_" && /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(after);
    const index = this.#open.findLastIndex((one) => one.mark === mark);
    if (!isInWord && index >= 0 && !/\s/.test(before)) {
      while (this.#open.length > index + 1) this.#giveUpLast();
      this.#flush();
      const parts = this.#open.pop()?.parts ?? [];
      this.#at += mark.length;
      this.#put({ kind: kinds[mark], at: this.#at, parts });
    } else if (!isInWord && !/\s/.test(after)) this.#begin(mark, mark.length);
    else {
      this.#plain += mark;
      this.#at += mark.length;
    }
  }

  #begin(mark: Open["mark"], length: number): void {
    if (this.#open.length < deepest) {
      this.#flush();
      this.#open.push({ at: this.#at + length, mark, parts: [] });
    } else this.#plain += mark;
    this.#at += length;
  }

  #link(): boolean {
    target.lastIndex = this.#at;
    const [whole, href] = target.exec(this.#text) ?? [];
    const index = this.#open.findLastIndex(({ mark }) => mark === "[");
    if (whole === undefined || href === undefined || index < 0) return false;
    while (this.#open.length > index + 1) this.#giveUpLast();
    this.#flush();
    const parts = this.#open.pop()?.parts ?? [];
    this.#at += whole.length;
    const at = this.#at;
    this.#put({ kind: "link", at, href, parts: parts.length > 0 ? parts : [{ kind: "text", at, text: href }] });
    return true;
  }

  #bareAddress(): boolean {
    address.lastIndex = this.#at;
    const [found] = address.exec(this.#text) ?? [];
    // Links do not nest: within a link's text, an address stays plain text.
    if (found === undefined || this.#open.some(({ mark }) => mark === "[")) return false;
    const href = found.replace(/[.,;:!?*_]{1,20}$/, "");
    this.#at += href.length;
    const at = this.#at;
    this.#put({ kind: "link", at, href, parts: [{ kind: "text", at, text: href }] });
    return true;
  }

  /** Marks that are never closed are literal text. */
  #giveUpLast(): void {
    this.#flush();
    const last = this.#open.pop();
    if (!last) return;
    this.#here().push({ kind: "text", at: last.at, text: last.mark }, ...last.parts);
  }

  #here(): Inline[] {
    return this.#open.at(-1)?.parts ?? this.#top;
  }

  #flush(): void {
    if (this.#plain !== "") this.#here().push({ kind: "text", at: this.#at, text: this.#plain });
    this.#plain = "";
  }

  #put(part: Inline): void {
    this.#flush();
    this.#here().push(part);
  }
}

/** Maps each run of backticks that opens code to the next run of the same length. */
function codeEndsOf(text: string): Map<number, number> {
  const ends = new Map<number, number>();
  const next = new Map<number, number>();
  for (const { 0: ticks, index } of [...text.matchAll(/`+/g)].reverse()) {
    const end = next.get(ticks.length);
    if (end !== undefined) ends.set(index, end);
    next.set(ticks.length, index);
  }
  return ends;
}

// Searches text or JSON for patterns while it arrives. A match is masked, ends the text, or is only counted.
import type { Segment } from "../../base/patterns/pattern-scan.ts";
import type { GuardedText } from "../../requests/dialects/texts/text-guard.ts";

/** A guardrail with patterns, for one text of a request or an answer. */
export interface PatternStage {
  /** The scan that searches one text after another for the patterns. */
  readonly scan: { feed(text: string): readonly Segment[]; end(): readonly Segment[] };
  /** Counts a match. Returns its replacement, "stays" to leave it, or "ends" to cut the text there. */
  found(rule: string): { readonly text: string } | "stays" | "ends";
  /** Releases the scan, so that a later text can reuse it. */
  release(): void;
}

export class PatternText implements GuardedText {
  readonly #stage: PatternStage;
  #isOver = false;

  constructor(stage: PatternStage) {
    this.#stage = stage;
  }

  feed(piece: string): string {
    return this.#isOver ? "" : this.#passed(this.#stage.scan.feed(piece));
  }

  end(): string {
    const rest = this.#stage.scan.end();
    const passed = this.#isOver ? "" : this.#passed(rest);
    this.#stage.release();
    return passed;
  }

  #passed(segments: readonly Segment[]): string {
    let passed = "";
    for (const { text, found } of segments) {
      const verdict = found ? this.#stage.found(found.name) : "stays";
      if (verdict === "ends") {
        this.#isOver = true;
        return passed;
      }
      passed += verdict === "stays" ? text : verdict.text;
    }
    return passed;
  }
}

const separators = "{}[],: \t\r\n";
/** A number or word outside of strings is scanned in parts if it is longer than this many characters. */
const maxTokenLength = 4_096;
const controls: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };

/**
 * Searches JSON for patterns. Each string and each number is a separate text. Unmatched parts are passed on exactly as
 * written. A masked number becomes a string.
 */
export class JsonText implements GuardedText {
  readonly #stage: PatternStage;
  #isOver = false;
  #isInString = false;
  /** `#escape` is an incomplete escape sequence. `#token` is an incomplete number or word outside of strings. */
  #escape = "";
  #token = "";
  /**
   * `#run` is the decoded part of a string that is not scanned yet. `#written` has the source text of each character
   * that was not passed on yet.
   */
  #run = "";
  #written: string[] = [];

  constructor(stage: PatternStage) {
    this.#stage = stage;
  }

  feed(piece: string): string {
    let passed = "";
    for (let index = 0; index < piece.length && !this.#isOver; index++) {
      const letter = piece[index] as string;
      passed += this.#isInString ? this.#inString(letter) : this.#outside(letter);
    }
    if (this.#isInString && !this.#isOver) passed += this.#scanned();
    return passed;
  }

  end(): string {
    let passed = "";
    if (!this.#isOver) {
      if (this.#isInString) {
        passed = this.#scanned();
        if (!this.#isOver) passed += this.#string(this.#stage.scan.end());
        if (!this.#isOver) passed += this.#escape;
      } else {
        passed = this.#takenToken();
      }
    }
    this.#stage.scan.end();
    this.#stage.release();
    return passed;
  }

  #outside(letter: string): string {
    if (letter !== '"' && !separators.includes(letter)) {
      this.#token += letter;
      return this.#token.length < maxTokenLength ? "" : this.#takenToken();
    }
    const before = this.#takenToken();
    if (this.#isOver) return before;
    this.#isInString = letter === '"';
    return before + letter;
  }

  #inString(letter: string): string {
    if (this.#escape !== "") {
      this.#escape += letter;
      if (this.#escape[1] === "u" && this.#escape.length < 6) return "";
      this.#add(meaningOf(this.#escape), this.#escape);
      this.#escape = "";
      return "";
    }
    if (letter === "\\") {
      this.#escape = letter;
      return "";
    }
    if (letter !== '"') {
      this.#add(letter, letter);
      return "";
    }
    let passed = this.#scanned();
    if (!this.#isOver) passed += this.#string(this.#stage.scan.end());
    this.#isInString = false;
    return this.#isOver ? passed : `${passed}"`;
  }

  #add(letter: string, written: string): void {
    this.#run += letter;
    this.#written.push(written);
  }

  #scanned(): string {
    const run = this.#run;
    this.#run = "";
    return this.#string(this.#stage.scan.feed(run));
  }

  /** Returns the part of a string that can be passed on, with its original escapes. */
  #string(segments: readonly Segment[]): string {
    let passed = "";
    let at = 0;
    for (const { text, found } of segments) {
      const verdict = found ? this.#stage.found(found.name) : "stays";
      if (verdict === "ends") {
        this.#isOver = true;
        return passed;
      }
      if (verdict !== "stays") passed += JSON.stringify(verdict.text).slice(1, -1);
      else for (let index = at; index < at + text.length; index++) passed += this.#written[index];
      at += text.length;
    }
    if (at > 0) this.#written.splice(0, at);
    return passed;
  }

  #takenToken(): string {
    const token = this.#token;
    if (token === "") return "";
    this.#token = "";
    const { scan } = this.#stage;
    const segments = [...scan.feed(token), ...scan.end()];
    let isMasked = false;
    let passed = "";
    for (const { text, found } of segments) {
      const verdict = found ? this.#stage.found(found.name) : "stays";
      if (verdict === "ends") {
        this.#isOver = true;
        return "";
      }
      if (verdict !== "stays") isMasked = true;
      passed += verdict === "stays" ? text : verdict.text;
    }
    return isMasked ? JSON.stringify(passed) : passed;
  }
}

function meaningOf(written: string): string {
  const kind = written[1] ?? "";
  if (kind === "u") return String.fromCharCode(Number.parseInt(written.slice(2), 16) || 0xfffd);
  return controls[kind] ?? kind;
}

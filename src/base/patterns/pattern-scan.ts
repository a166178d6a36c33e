// Finds patterns in a text that arrives in pieces. Only text that may still become part of a match is buffered. The
// result does not depend on where the text is cut.
import type { NamedPattern, PatternSet, Way } from "./pattern-set.ts";
import { assertions, isWordUnit } from "./pattern-syntax.ts";

/** Maximum length of a match, and of the buffered text, in UTF-16 code units. */
export const maxMatchLength = 16_384;

/**
 * A part of the text: either a match, with `found` as its pattern, or the text between matches. All parts concatenated
 * are the text.
 */
export interface Segment {
  readonly text: string;
  readonly found: NamedPattern | undefined;
}

interface Match {
  from: number;
  to: number;
  pattern: NamedPattern;
}

const nothing: readonly Segment[] = [];
const none = -1;

/**
 * Finds every match of every pattern. Overlapping matches become one. The scan follows all states of the patterns in
 * parallel, and keeps only the earliest start for each state. A match from an earlier start includes the shorter
 * matches.
 */
export class PatternScan {
  readonly #set: PatternSet;
  /** For each state, the position at which it was last reached. */
  readonly #reachedAt: Int32Array;
  readonly #begunAt: Int32Array;
  #live: number[] = [];
  #next: number[] = [];
  /** The text from `#bufferedFrom` on, which was not returned yet. */
  #buffered = "";
  #bufferedFrom = 0;
  /** The number of characters read so far, and the last of them. */
  #at = 0;
  #before = none;
  #matches: Match[] = [];

  constructor(set: PatternSet) {
    this.#set = set;
    this.#reachedAt = new Int32Array(set.states.length).fill(none);
    this.#begunAt = new Int32Array(set.states.length);
  }

  /** Reads a piece of the text. Returns the parts of the text that later pieces cannot change. */
  feed(text: string): readonly Segment[] {
    if (text === "") return nothing;
    this.#buffered += text;
    const { begins } = this.#set;
    const all = begins[128] as readonly Way[];
    const { length } = text;
    for (let index = 0; index < length; index++) {
      const unit = text.charCodeAt(index);
      const begun = unit < 128 ? (begins[unit] as readonly Way[]) : all;
      if (this.#live.length > 0 || begun.length > 0) this.#step(unit, begun);
      this.#before = unit;
      this.#at++;
    }
    return this.#segmentsBefore(this.#earliest());
  }

  /** Ends the text and returns its remaining parts. The scan can then read another text. */
  end(): readonly Segment[] {
    const holds = this.#holding(none);
    for (const state of this.#live) this.#follow(state, none, holds);
    this.#live.length = 0;
    this.#before = none;
    return this.#segmentsBefore(this.#at);
  }

  /** Number of buffered characters. */
  get bufferedLength(): number {
    return this.#buffered.length;
  }

  #step(unit: number, begun: readonly Way[]): void {
    const holds = this.#holding(unit);
    for (const state of this.#live) this.#follow(state, unit, holds);
    for (const way of begun) {
      if ((way.holds & ~holds) === 0 && way.units?.has(unit)) this.#reach(way.to, this.#at);
    }
    const done = this.#live;
    this.#live = this.#next;
    done.length = 0;
    this.#next = done;
  }

  /** Returns the assertions that hold between the last character and `unit`, as bits. */
  #holding(unit: number): number {
    const isBoundary = isWordUnit(unit) !== isWordUnit(this.#before);
    const assertion = (this.#before === none ? assertions.start : 0) | (unit === none ? assertions.end : 0);
    return assertion | (isBoundary ? assertions.boundary : assertions.inside);
  }

  #follow(state: number, unit: number, holds: number): void {
    const begunAt = this.#begunAt[state] as number;
    for (const way of this.#set.states[state] as readonly Way[]) {
      if ((way.holds & ~holds) !== 0) continue;
      if (way.units === undefined) this.#match(begunAt, way.to);
      else if (way.units.has(unit) && this.#at - begunAt < maxMatchLength) this.#reach(way.to, begunAt);
    }
  }

  #reach(state: number, begunAt: number): void {
    if (this.#reachedAt[state] !== this.#at) {
      this.#reachedAt[state] = this.#at;
      this.#begunAt[state] = begunAt;
      this.#next.push(state);
    } else if (begunAt < (this.#begunAt[state] as number)) {
      this.#begunAt[state] = begunAt;
    }
  }

  #match(from: number, number: number): void {
    const to = this.#at;
    let pattern = this.#set.patterns[number] as NamedPattern;
    if (pattern.isMeant?.(this.#buffered.slice(from - this.#bufferedFrom, to - this.#bufferedFrom)) === false) return;
    let begin = from;
    for (let last = this.#matches.at(-1); last && last.to > from; last = this.#matches.at(-1)) {
      // If one match contains the other, the longer match names the joined match.
      if (last.from < begin || (last.from === begin && last.to === to)) {
        begin = last.from;
        pattern = last.pattern;
      }
      this.#matches.pop();
    }
    this.#matches.push({ from: begin, to, pattern });
  }

  /** Returns the earliest start of a text that may still become a match. */
  #earliest(): number {
    let earliest = this.#at;
    for (const state of this.#live) earliest = Math.min(earliest, this.#begunAt[state] as number);
    return earliest;
  }

  /** Returns everything before `until`, except matches that extend beyond it. */
  #segmentsBefore(until: number): readonly Segment[] {
    if (until === this.#bufferedFrom) return nothing;
    const segments: Segment[] = [];
    let from = this.#bufferedFrom;
    let end = until;
    let count = 0;
    for (const match of this.#matches) {
      if (match.to > until) {
        end = Math.min(end, match.from);
        break;
      }
      if (match.from > from) segments.push({ text: this.#textOf(from, match.from), found: undefined });
      segments.push({ text: this.#textOf(match.from, match.to), found: match.pattern });
      from = match.to;
      count++;
    }
    if (count > 0) this.#matches = this.#matches.slice(count);
    if (end > from) segments.push({ text: this.#textOf(from, end), found: undefined });
    this.#buffered = this.#buffered.slice(Math.max(from, end) - this.#bufferedFrom);
    this.#bufferedFrom = Math.max(from, end);
    return segments;
  }

  #textOf(from: number, to: number): string {
    return this.#buffered.slice(from - this.#bufferedFrom, to - this.#bufferedFrom);
  }
}

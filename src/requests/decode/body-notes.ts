// Records the positions, and some values and item counts, of the body members that the gateway reads. All are found in
// one scan over the bytes of a request body.
import { afterSpace, isSame, latin1, numberPassed, textAt } from "../../base/text/json-bytes.ts";
import type { IsolatedMember } from "../../domain/models/isolation.ts";
import { asksForUsage, type BodyFacts, type MemberRange } from "../facts.ts";
import { kindAt } from "./kind-at.ts";
import { arrayKind, falseKind, noKind, nullKind, numberKind, textKind, trueKind } from "./rule.ts";

/** For each recorded member, its index in the arrays of `BodyNotes`. */
export const notes = {
  ...{ model: 0, stream: 1, streamOptions: 2, choices: 3, bestOf: 4 },
  ...{ newerLimit: 5, olderLimit: 6, store: 7, prompt: 8, stop: 9 },
  ...{ background: 10, previous: 11, conversation: 12, sealed: 13 },
  ...{ user: 14, safetyIdentifier: 15, metadata: 16, promptCacheKey: 17, cacheSalt: 18, priority: 19, otherLimit: 20 },
  templateArguments: 21,
} as const;
const isolatingNotes = [
  ["user", notes.user],
  ["safety_identifier", notes.safetyIdentifier],
  ["prompt_cache_key", notes.promptCacheKey],
  ["cache_salt", notes.cacheSalt],
  ["priority", notes.priority],
  ["metadata", notes.metadata],
] as const satisfies readonly (readonly [IsolatedMember["name"], number])[];
const offset = Object.keys(notes).length;
/** Maximum number of unknown members whose positions are recorded. */
const maxUnknown = 16;
const noMembers: readonly MemberRange[] = [];
const onlyUsage = Buffer.from('{"include_usage":true}');

/**
 * The facts of the body that was scanned last. There is only one such object, so callers must copy the facts before the
 * next scan.
 */
export class BodyNotes implements BodyFacts {
  promptTokens = 0;
  hasMedia = false;
  /** Number of members of the body that the scan found no rule for. */
  #unknown = 0;
  /**
   * Byte offsets at which the first unknown members begin and end. Each range extends from the member's name to the end
   * of its value.
   */
  readonly #unknownStarts = new Int32Array(maxUnknown);
  readonly #unknownEnds = new Int32Array(maxUnknown);
  /** Byte offsets at which the recorded values begin and end. Both are 0 if the member is missing. */
  readonly #starts = new Int32Array(offset);
  readonly #ends = new Int32Array(offset);
  /** Values of recorded numbers. `#items` has the item counts of recorded arrays. */
  readonly #numbers = new Float64Array(offset);
  readonly #items = new Int32Array(offset);

  clear(): void {
    this.promptTokens = 0;
    this.hasMedia = false;
    this.#unknown = 0;
    this.#starts.fill(0);
    this.#ends.fill(0);
  }

  /** Records the value that the scan has just passed. `items` is the number of its items if the value is an array. */
  add(note: number, start: number, end: number, items: number): void {
    this.#starts[note] = start;
    this.#ends[note] = end;
    if (kindAt(start) === numberKind) this.#numbers[note] = numberPassed();
    this.#items[note] = items;
  }

  /** Records the position of a body member for which there is no rule. */
  addUnknown(start: number, end: number): void {
    if (this.#unknown < maxUnknown) {
      this.#unknownStarts[this.#unknown] = start;
      this.#unknownEnds[this.#unknown] = end;
    }
    this.#unknown++;
  }

  get model(): string {
    return textAt(this.modelStart, this.modelEnd);
  }

  get modelStart(): number {
    return this.#starts[notes.model] as number;
  }

  get modelEnd(): number {
    return this.#ends[notes.model] as number;
  }

  get stream(): boolean {
    return this.#kindOf(notes.stream) === trueKind;
  }

  get streamOptions(): BodyFacts["streamOptions"] {
    if (this.#kindOf(notes.streamOptions) === noKind) return "none";
    const start = this.#starts[notes.streamOptions] as number;
    const end = this.#ends[notes.streamOptions] as number;
    return isSame(onlyUsage, start, end) || asksForUsage(JSON.parse(latin1(start, end))) ? "usage" : "other";
  }

  get choices(): number {
    return this.#numberOf(notes.choices) ?? 1;
  }

  get bestOf(): number {
    return this.#numberOf(notes.bestOf) ?? 1;
  }

  get newerLimit(): number | null | undefined {
    return this.#numberOf(notes.newerLimit);
  }

  get olderLimit(): number | null | undefined {
    return this.#numberOf(notes.olderLimit);
  }

  get hasOthers(): boolean {
    return this.#unknown > 0 || this.#kindOf(notes.otherLimit) !== noKind;
  }

  get unknownMembers(): readonly MemberRange[] | undefined {
    if (this.#unknown > maxUnknown || this.#kindOf(notes.otherLimit) !== noKind) return undefined;
    if (this.#unknown === 0) return noMembers;
    return Array.from({ length: this.#unknown }, (_, index) => ({
      start: this.#unknownStarts[index] as number,
      end: this.#unknownEnds[index] as number,
    }));
  }

  get hasEmptyStop(): boolean {
    const length = (this.#ends[notes.stop] as number) - (this.#starts[notes.stop] as number);
    return length === 2 && this.#kindOf(notes.stop) === textKind;
  }

  get store(): boolean | null | undefined {
    const kind = this.#kindOf(notes.store);
    if (kind === trueKind || kind === falseKind) return kind === trueKind;
    return kind === nullKind ? null : undefined;
  }

  get background(): boolean {
    return this.#kindOf(notes.background) === trueKind;
  }

  /**
   * True if the body refers to a stored response or conversation. References to stored items need not be found here,
   * because a body with such items is parsed completely.
   */
  get namesKept(): boolean {
    return this.#isNamed(notes.previous) || this.#isNamed(notes.conversation);
  }

  get maySeal(): boolean {
    return this.#kindOf(notes.sealed) !== noKind;
  }

  get userStart(): number {
    return this.#starts[this.#userNote] as number;
  }

  get userEnd(): number {
    return this.#ends[this.#userNote] as number;
  }

  get metadataStart(): number {
    return this.#starts[notes.metadata] as number;
  }

  get metadataEnd(): number {
    return this.#ends[notes.metadata] as number;
  }

  get templateStart(): number {
    return this.#starts[notes.templateArguments] as number;
  }

  get templateEnd(): number {
    return this.#ends[notes.templateArguments] as number;
  }

  get isolating(): readonly IsolatedMember[] | undefined {
    let members: IsolatedMember[] | undefined;
    for (const [name, note] of isolatingNotes) {
      const end = this.#ends[note] as number;
      if (end === 0) continue;
      members ??= [];
      members.push({ name, start: this.#starts[note] as number, end });
    }
    return members;
  }

  /**
   * Returns the member that names the user: `safety_identifier` if it is a non-empty text, and otherwise the older
   * member `user`.
   */
  get #userNote(): number {
    const length = (this.#ends[notes.safetyIdentifier] as number) - (this.#starts[notes.safetyIdentifier] as number);
    const isSaid = length > 2 && this.#kindOf(notes.safetyIdentifier) === textKind;
    return isSaid ? notes.safetyIdentifier : notes.user;
  }

  /** Returns the number of texts in the prompt, counted in the same way as by `countTexts`. */
  get prompts(): number {
    if (this.#kindOf(notes.prompt) !== arrayKind) return 1;
    const first = kindAt(afterSpace((this.#starts[notes.prompt] as number) + 1));
    return first === numberKind ? 1 : this.promptItems;
  }

  /** Returns the number of items in the prompt, or 0 if the prompt is no array. */
  get promptItems(): number {
    return this.#kindOf(notes.prompt) === arrayKind ? (this.#items[notes.prompt] as number) : 0;
  }

  #isNamed(note: number): boolean {
    const kind = this.#kindOf(note);
    return kind !== noKind && kind !== nullKind;
  }

  #kindOf(note: number): number {
    const start = this.#starts[note] as number;
    return start === 0 ? noKind : kindAt(start);
  }

  /** Returns the value of a number. Returns undefined if the member is missing, and null if its value is no number. */
  #numberOf(note: number): number | null | undefined {
    const kind = this.#kindOf(note);
    return kind === numberKind ? this.#numbers[note] : kind === noKind ? undefined : null;
  }
}

// Records where the members that the gateway reads begin and end, and their counts, during one byte scan of a request
// body.
import { afterSpace, isSame, latin1, numberPassed, textAt } from "../../base/text/json-bytes.ts";
import type { IsolatedMember } from "../../domain/models/isolation.ts";
import { asksForUsage, type BodyFacts, type MemberRange } from "../facts.ts";
import { kindAt } from "./kind-at.ts";
import { arrayKind, falseKind, noKind, nullKind, numberKind, textKind, trueKind } from "./rule.ts";

/** Index of each noted member in the arrays of `BodyNotes`. */
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
/** The maximum number of unknown members whose offsets are recorded. */
const maxUnknown = 16;
const noMembers: readonly MemberRange[] = [];
const onlyUsage = Buffer.from('{"include_usage":true}');

/**
 * Body facts of the loaded text. All bodies share one object, so callers copy the facts before they load the next text.
 */
export class BodyNotes implements BodyFacts {
  promptTokens = 0;
  hasMedia = false;
  /** The number of body members without a rule that the scan passed. */
  #unknown = 0;
  /** Byte offsets of the first of these members, each from its name to the end of its value. */
  readonly #unknownStarts = new Int32Array(maxUnknown);
  readonly #unknownEnds = new Int32Array(maxUnknown);
  /** Byte offsets of the noted values; start and end are 0 for an absent member. */
  readonly #starts = new Int32Array(offset);
  readonly #ends = new Int32Array(offset);
  /** Values of noted numbers, and item counts of noted arrays. */
  readonly #numbers = new Float64Array(offset);
  readonly #items = new Int32Array(offset);

  clear(): void {
    this.promptTokens = 0;
    this.hasMedia = false;
    this.#unknown = 0;
    this.#starts.fill(0);
    this.#ends.fill(0);
  }

  /** Records the value that the scan has just passed. `items` is the item count if the value is an array. */
  add(note: number, start: number, end: number, items: number): void {
    this.#starts[note] = start;
    this.#ends[note] = end;
    if (kindAt(start) === numberKind) this.#numbers[note] = numberPassed();
    this.#items[note] = items;
  }

  /** Records where a body member without a rule begins and ends. */
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
   * True if the body refers to a stored response or conversation. References to stored items do not count here, because
   * a body with such items is parsed in full.
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

  /** Returns `safety_identifier` if that member is a text with content, and otherwise the older member `user`. */
  get #userNote(): number {
    const length = (this.#ends[notes.safetyIdentifier] as number) - (this.#starts[notes.safetyIdentifier] as number);
    const isSaid = length > 2 && this.#kindOf(notes.safetyIdentifier) === textKind;
    return isSaid ? notes.safetyIdentifier : notes.user;
  }

  /** Returns the number of texts in the prompt, as `countTexts` does. */
  get prompts(): number {
    if (this.#kindOf(notes.prompt) !== arrayKind) return 1;
    const first = kindAt(afterSpace((this.#starts[notes.prompt] as number) + 1));
    return first === numberKind ? 1 : this.promptItems;
  }

  /** Returns the number of items in the prompt; 0 if the prompt is no array. */
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

  /** Returns undefined for an absent member and null for a value that is no number. */
  #numberOf(note: number): number | null | undefined {
    const kind = this.#kindOf(note);
    return kind === numberKind ? this.#numbers[note] : kind === noKind ? undefined : null;
  }
}

// Settled records stored as arrays of columns, so that thousands of waiting records need no objects.
import type { UsageBegin, UsageEnd, UsageRecord } from "../../domain/usage/usage.ts";
import type { UsageParts } from "../../domain/usage/usage-parts.ts";
import { detailsText, readDetails } from "../../storage/tables/details-text.ts";
import { readTrail, trailText } from "../../storage/tables/trail-text.ts";
import { wholeOf } from "../spool-format.ts";
import { requestKindOf, type UsageKind, usageKindOf } from "./usage-kinds.ts";

/** The positions of a record's numbers in its row. */
export const at = 0;
export const promptTokens = 1;
export const completionTokens = 2;
export const nanoUsd = 3;
export const durationMs = 4;
export const firstTokenMs = 5;
export const queueMs = 6;
export const cachedTokens = 7;
export const cacheWriteTokens = 8;
export const reasoningTokens = 9;
/** The number of numbers in a row. */
const stride = 10;
/** Represents null, because all real values are non-negative integers. */
const none = -1;

/**
 * Usage records with integers that a database column can store, so that writing the spool into the database never
 * fails.
 */
export class UsageColumns {
  /** The number of rows. Array elements beyond it are meaningless. */
  length = 0;
  readonly kinds: UsageKind[] = [];
  readonly requestIds: string[] = [];
  readonly accountIds: string[] = [];
  readonly keyIds: string[] = [];
  readonly appIds: (string | null)[] = [];
  #numbers: Float64Array;
  /** Attempt logs (trails) as text, by row; few requests have one. */
  readonly #trails = new Map<number, string>();
  /** Usage details as text, by row. */
  readonly #details = new Map<number, string>();
  /** Tags by row; rows without tags are missing. */
  readonly #tags = new Map<number, readonly string[]>();

  /** Allocates space for this many rows; more may follow. */
  constructor(capacity: number) {
    this.#numbers = new Float64Array(capacity * stride);
  }

  static of(records: readonly UsageRecord[]): UsageColumns {
    const columns = new UsageColumns(records.length);
    for (const record of records) columns.add(record, usageKindOf(requestKindOf(record), record), record);
    return columns;
  }

  /** Adds a record, and returns the index of its row. */
  add(begin: UsageBegin, kind: UsageKind, end: UsageEnd): number {
    const row = this.#grow();
    this.kinds[row] = kind;
    this.requestIds[row] = begin.requestId;
    this.accountIds[row] = begin.accountId;
    this.keyIds[row] = begin.keyId;
    this.appIds[row] = begin.appId;
    const numbers = this.#numbers;
    const first = row * stride;
    numbers[first + at] = wholeOf(begin.at);
    numbers[first + promptTokens] = wholeOf(end.promptTokens);
    numbers[first + completionTokens] = wholeOf(end.completionTokens);
    numbers[first + nanoUsd] = end.nanoUsd === null ? none : wholeOf(end.nanoUsd);
    numbers[first + durationMs] = wholeOf(end.durationMs);
    numbers[first + firstTokenMs] = end.firstTokenMs === null ? none : wholeOf(end.firstTokenMs);
    numbers[first + queueMs] = wholeOf(end.queueMs);
    const { parts } = end;
    numbers[first + cachedTokens] = parts === undefined ? 0 : wholeOf(parts.cachedTokens);
    numbers[first + cacheWriteTokens] = parts === undefined ? 0 : wholeOf(parts.cacheWriteTokens);
    numbers[first + reasoningTokens] = parts === undefined ? 0 : wholeOf(parts.reasoningTokens);
    const details = detailsText(parts?.details);
    if (details !== undefined) this.#details.set(row, details);
    if (end.trail !== undefined) this.#trails.set(row, trailText(end.trail));
    if (begin.tags !== undefined) this.#tags.set(row, begin.tags);
    return row;
  }

  /** Copies a row of `from`, and returns the index of the copy. */
  copy(from: UsageColumns, row: number): number {
    const copied = this.#grow();
    this.kinds[copied] = from.kindAt(row);
    this.requestIds[copied] = from.requestIds[row] ?? "";
    this.accountIds[copied] = from.accountIds[row] ?? "";
    this.keyIds[copied] = from.keyIds[row] ?? "";
    this.appIds[copied] = from.appIds[row] ?? null;
    for (let i = 0; i < stride; i++) this.#numbers[copied * stride + i] = from.#numbers[row * stride + i] ?? 0;
    const trail = from.trailAt(row);
    if (trail !== undefined) this.#trails.set(copied, trail);
    const details = from.detailsAt(row);
    if (details !== undefined) this.#details.set(copied, details);
    const tags = from.tagsAt(row);
    if (tags !== undefined) this.#tags.set(copied, tags);
    return copied;
  }

  /** The texts of the attempt logs (trails), by row. */
  get trails(): ReadonlyMap<number, string> {
    return this.#trails;
  }

  /** Sets the attempt log of a row; undefined removes it. */
  setTrail(row: number, text: string | undefined): void {
    if (text === undefined) this.#trails.delete(row);
    else this.#trails.set(row, text);
  }

  /** The texts of the details, by row. */
  get details(): ReadonlyMap<number, string> {
    return this.#details;
  }

  /** The tags by row. */
  get tags(): ReadonlyMap<number, readonly string[]> {
    return this.#tags;
  }

  tagsAt(row: number): readonly string[] | undefined {
    return this.#tags.size === 0 ? undefined : this.#tags.get(row);
  }

  detailsAt(row: number): string | undefined {
    return this.#details.size === 0 ? undefined : this.#details.get(row);
  }

  dropDetails(row: number): void {
    this.#details.delete(row);
  }

  /** Reports whether the upstream reported any part of the tokens. */
  hasParts(row: number): boolean {
    const first = row * stride;
    const numbers = this.#numbers;
    const sum =
      (numbers[first + cachedTokens] ?? 0) +
      (numbers[first + cacheWriteTokens] ?? 0) +
      (numbers[first + reasoningTokens] ?? 0);
    return sum > 0 || this.detailsAt(row) !== undefined;
  }

  trailAt(row: number): string | undefined {
    return this.#trails.size === 0 ? undefined : this.#trails.get(row);
  }

  kindAt(row: number): UsageKind {
    const kind = this.kinds[row];
    if (kind === undefined) throw new RangeError(`There is no row ${row}.`);
    return kind;
  }

  /** Returns the value of a column that is never null. */
  number(row: number, column: number): number {
    return this.#numbers[row * stride + column] ?? 0;
  }

  /** Returns the value of a column that may be null. */
  numberOrNull(row: number, column: number): number | null {
    const value = this.#numbers[row * stride + column] ?? none;
    return value === none ? null : value;
  }

  recordAt(row: number): UsageRecord {
    const { request, outcome, errorCode, estimated, capped, upstream } = this.kindAt(row);
    const { environment, operation, model, stream } = request;
    const text = this.trailAt(row);
    const trail = text === undefined ? undefined : readTrail(text);
    return {
      requestId: this.requestIds[row] ?? "",
      at: this.number(row, at),
      accountId: this.accountIds[row] ?? "",
      keyId: this.keyIds[row] ?? "",
      appId: this.appIds[row] ?? null,
      ...{ environment, operation, model, stream },
      tags: this.tagsAt(row),
      promptTokens: this.number(row, promptTokens),
      completionTokens: this.number(row, completionTokens),
      parts: this.#partsAt(row),
      ...{ estimated, outcome, errorCode },
      nanoUsd: this.numberOrNull(row, nanoUsd),
      ...{ capped, upstream },
      durationMs: this.number(row, durationMs),
      firstTokenMs: this.numberOrNull(row, firstTokenMs),
      queueMs: this.number(row, queueMs),
      trail,
    };
  }

  #partsAt(row: number): UsageParts | undefined {
    if (!this.hasParts(row)) return undefined;
    const text = this.detailsAt(row);
    return {
      cachedTokens: this.number(row, cachedTokens),
      cacheWriteTokens: this.number(row, cacheWriteTokens),
      reasoningTokens: this.number(row, reasoningTokens),
      details: text === undefined ? undefined : readDetails(text),
    };
  }

  records(): UsageRecord[] {
    return Array.from({ length: this.length }, (_, row) => this.recordAt(row));
  }

  /** Returns the matching rows, or this object if all match. */
  filter(isWanted: (row: number) => boolean): UsageColumns {
    let wanted: UsageColumns | undefined;
    for (let row = 0; row < this.length; row++) {
      if (isWanted(row)) {
        wanted?.copy(this, row);
      } else if (wanted === undefined) {
        wanted = new UsageColumns(this.length);
        for (let before = 0; before < row; before++) wanted.copy(this, before);
      }
    }
    return wanted ?? this;
  }

  clear(): void {
    this.length = 0;
    if (this.#trails.size > 0) this.#trails.clear();
    if (this.#details.size > 0) this.#details.clear();
    if (this.#tags.size > 0) this.#tags.clear();
  }

  #grow(): number {
    if ((this.length + 1) * stride > this.#numbers.length) {
      const more = new Float64Array(Math.max(16 * stride, this.#numbers.length * 2));
      more.set(this.#numbers);
      this.#numbers = more;
    }
    return this.length++;
  }
}

// Adds up usage by hour or day for each account, key, app, environment and model, and also by tag.
import { z } from "zod";
import { inOrderOfTexts } from "../../base/text/text-order.ts";
import { matchesModel } from "../../domain/models/model-patterns.ts";
import { generationOf, ownAppId, type SpanTotals } from "../../domain/usage/usage.ts";
import {
  at,
  cachedTokens,
  cacheWriteTokens,
  completionTokens,
  durationMs,
  firstTokenMs,
  nanoUsd,
  promptTokens,
  reasoningTokens,
  type UsageColumns,
} from "./usage-columns.ts";
import type { RequestKind } from "./usage-kinds.ts";

export type UsageSpan = "hour" | "day";

const spanSeconds = { hour: 3_600, day: 86_400 } as const satisfies Record<UsageSpan, number>;

/** A row of the roll-ups, in the order of `rollupColumns`. In the roll-up by tag, the tag follows the key columns. */
export type RollupRow = [string, string, UsageSpan, number, string, string, string, ...(string | number)[]];

/** The tag of rows that count every request with tags once. A request with several tags is in several other rows. */
export const anyTag = "";

/** The key columns, the columns that are added up, and the times of the first and last usage. */
export const rollupColumns = {
  key: ["account_id", "environment", "span", "start", "key_id", "app_id", "model"],
  sums: [
    "requests",
    "prompt_tokens",
    "completion_tokens",
    "nano_usd",
    "errors",
    "timed",
    "first_token_ms",
    "generated_tokens",
    "generation_ms",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "unpriced",
  ],
  times: ["first_at", "last_at"],
} as const;
export const tagColumn = "tag";

/** A row of a table of sums: its values in the order of the table's columns. */
export type SumRow = (string | number)[];
/** The columns of a table of sums, as in `rollupColumns`. */
export type SumColumns = Readonly<Record<"key" | "sums" | "times", readonly string[]>>;

const [promptSum, completionSum, nanoUsdSum] = [1, 2, 3];
/** Positions in a row: the time of the first usage, of the last usage, and the start of the time span. */
const firstAt = rollupColumns.sums.length;
const lastAt = firstAt + 1;
const start = lastAt + 1;
const stride = start + 1;
/** The index of a sum that does not exist. */
const none = -1;

/** The key of a sum, without the start of its time span. */
interface Whose {
  accountId: string;
  /** '' if there is no app, because the primary key of the roll-ups cannot contain null. */
  appId: string;
  environment: string;
  model: string;
  /** The tag; undefined for the sum of all requests. */
  tag: string | undefined;
}

/** The accounts or keys whose usage is added up. */
export interface TotalOf {
  accountIds?: ReadonlySet<string>;
  keyIds?: ReadonlySet<string>;
  environment: string;
  /** Model ids, or prefixes ending in `*`. Undefined: all models. */
  models?: readonly string[];
  tag?: string;
  /**
   * Time span in Unix seconds. `since` is included, `until` is not. An hour or day that contains `since` counts
   * entirely.
   */
  since: number;
  until: number;
}

/**
 * The last three numbers of a stored sum are no sums, but two times and the start of the time span. `fewestNumbers` is
 * the smallest count of numbers that any version wrote for a sum.
 */
const notSums = 3;
const fewestNumbers = 12;
const textSchema = z.array(z.union([z.string(), z.number()]));

export class UsageSums {
  readonly #seconds: number;
  /** The index of the newest sum of each key or key and tag. `#before` links each sum to the previous one. */
  readonly #ofKey = new Map<string, number>();
  readonly #before: number[] = [];
  readonly #keyIds: string[] = [];
  /** The key columns of each sum. Equal values share an object, to save memory accesses. */
  readonly #whose: Whose[] = [];
  readonly #known = new Map<string, Whose>();
  #numbers = new Float64Array(16 * stride);
  /** The newest sum of the key, for each row that is being added. */
  #newest = new Int32Array(0);

  constructor(span: UsageSpan) {
    this.#seconds = spanSeconds[span];
  }

  get size(): number {
    return this.#keyIds.length;
  }

  add(usage: UsageColumns): void {
    this.#lookUp(usage);
    for (let row = 0; row < usage.length; row++) this.#addRow(usage, row);
    for (const [row, tags] of usage.tags) {
      this.#addTagged(usage, row, anyTag);
      for (const tag of tags) this.#addTagged(usage, row, tag);
    }
  }

  /** Adds sums from a text that `textTakingAway` wrote. Throws for other texts. */
  addText(text: string): void {
    const values = textSchema.parse(JSON.parse(text));
    for (let i = 0; i < values.length; ) {
      const [texts, numbers]: [string[], number[]] = [[], []];
      for (let value = values[i]; typeof value === "string"; value = values[++i]) texts.push(value);
      // Strings begin the next sum.
      for (let value = values[i]; typeof value === "number"; value = values[++i]) numbers.push(value);
      const [accountId = "", keyId = "", appId = "", environment = "", model, tag] = texts;
      if (model === undefined || numbers.length < fewestNumbers) throw new Error("It ends in the middle of a sum.");
      // Older versions wrote fewer numbers, newer ones may write more.
      const sums = Array.from({ length: firstAt }, (_, i) => (i < numbers.length - notSums ? (numbers[i] ?? 0) : 0));
      this.#addSum(keyId, { accountId, appId, environment, model, tag }, [...sums, ...numbers.slice(-notSums)]);
    }
  }

  /** Returns a text with the negative sums. The times stay positive. */
  textTakingAway(sums: readonly number[]): string {
    const values: (string | number)[] = [];
    for (const sum of sums) {
      const { accountId, appId, environment, model, tag } = this.#whoseAt(sum);
      values.push(accountId, this.#keyIds[sum] ?? "", appId, environment, model);
      if (tag !== undefined) values.push(tag);
      const first = sum * stride;
      for (let i = first; i < first + firstAt; i++) values.push(-(this.#numbers[i] ?? 0));
      for (let i = first + firstAt; i < first + stride; i++) values.push(this.#numbers[i] ?? 0);
    }
    return JSON.stringify(values);
  }

  /** Returns the roll-up row that the sum must be added to. With `span` day, an hourly sum gets the row of its day. */
  rowAt(sum: number, span: UsageSpan): RollupRow {
    const { accountId, appId, environment, model, tag } = this.#whoseAt(sum);
    const keyId = this.#keyIds[sum] ?? "";
    const first = sum * stride;
    const from = this.#numbers[first + start] ?? 0;
    const row: RollupRow = [accountId, environment, span, from - (from % spanSeconds[span]), keyId, appId, model];
    if (tag !== undefined) row.push(tag);
    for (let i = first; i < first + start; i++) row.push(this.#numbers[i] ?? 0);
    return row;
  }

  /** Reports whether the sum belongs to the roll-ups by tag. */
  isByTag(sum: number): boolean {
    return this.#whoseAt(sum).tag !== undefined;
  }

  /** Reports whether the sum is zero. */
  isEmpty(sum: number): boolean {
    return this.#numbers[sum * stride] === 0;
  }

  /** Sets the sum to zero. */
  empty(sum: number): void {
    this.#numbers.fill(0, sum * stride, sum * stride + firstAt);
  }

  /**
   * Returns the indexes of the sums, roughly sorted by the roll-ups' primary key, so that neighboring rows are written
   * together. Yields every millisecond or two. Add nothing during the iteration.
   */
  *inOrder(): Generator<undefined, number[]> {
    const ofAccount = new Map<string, number[]>();
    for (let sum = 0; sum < this.size; sum++) {
      const { accountId } = this.#whoseAt(sum);
      const sums = ofAccount.get(accountId);
      if (sums === undefined) ofAccount.set(accountId, [sum]);
      else sums.push(sum);
      if (sum % pieceSums === 0) yield;
    }
    const accountIds = [...ofAccount.keys()];
    const order: number[] = [];
    for (const account of yield* inOrderOfTexts(accountIds)) {
      const sums = ofAccount.get(accountIds[account] ?? "") ?? [];
      for (const i of yield* inOrderOfTexts(sums.map((sum) => this.#keyIds[sum] ?? ""))) {
        if (order.push(sums[i] ?? 0) % pieceSums === 0) yield;
      }
    }
    return order;
  }

  totalOf({ accountIds, keyIds, environment, models, tag, since, until }: TotalOf): SpanTotals {
    const totals: SpanTotals = { requests: 0, tokens: 0, nanoUsd: 0, firstAt: undefined };
    const take = (sum: number) => {
      const first = sum * stride;
      const whose = this.#whoseAt(sum);
      if (whose.tag !== tag || whose.environment !== environment || whose.appId === ownAppId) return;
      if ((this.#numbers[first + start] ?? 0) >= until) return;
      if ((this.#numbers[first + lastAt] ?? 0) < since || this.isEmpty(sum)) return;
      if (models !== undefined && !matchesModel(models, whose.model)) return;
      totals.requests += this.#numbers[first] ?? 0;
      totals.tokens += (this.#numbers[first + promptSum] ?? 0) + (this.#numbers[first + completionSum] ?? 0);
      totals.nanoUsd += this.#numbers[first + nanoUsdSum] ?? 0;
      const from = Math.max(since, this.#numbers[first + firstAt] ?? since);
      totals.firstAt = Math.min(totals.firstAt ?? from, from);
    };
    for (const keyId of keyIds ?? []) {
      for (let sum = this.#newestOf(keyId, tag); sum !== none; sum = this.#before[sum] ?? none) take(sum);
    }
    if (accountIds !== undefined) {
      for (let sum = 0; sum < this.size; sum++) if (accountIds.has(this.#whoseAt(sum).accountId)) take(sum);
    }
    return totals;
  }

  /**
   * Looks up the newest sum of each row's key before the rows are added. In such a short loop the processor overlaps
   * the slow memory accesses.
   */
  #lookUp({ keyIds, length }: UsageColumns): void {
    if (this.#newest.length < length) this.#newest = new Int32Array(length);
    for (let row = 0; row < length; row++) this.#newest[row] = this.#newestOf(keyIds[row] ?? "");
  }

  #newestOf(keyId: string, tag?: string): number {
    return this.#ofKey.get(nameOf(keyId, tag)) ?? none;
  }

  #addRow(usage: UsageColumns, row: number): void {
    this.#addTo(this.#findFor(usage, row, usage.kindAt(row).request, usage.number(row, at)), usage, row);
  }

  #addTagged(usage: UsageColumns, row: number, tag: string): void {
    const { environment, model } = usage.kindAt(row).request;
    const accountId = usage.accountIds[row] ?? "";
    const appId = usage.appIds[row] ?? "";
    const second = usage.number(row, at);
    const from = second - (second % this.#seconds);
    const sum = this.#find(usage.keyIds[row] ?? "", accountId, appId, environment, model, tag, from, second);
    this.#addTo(sum, usage, row);
  }

  #addTo(sum: number, usage: UsageColumns, row: number): void {
    const first = stride * sum;
    this.#widen(first, usage.number(row, at));
    addUsage(this.#numbers, first, usage, row);
  }

  #findFor(usage: UsageColumns, row: number, { environment, model }: RequestKind, second: number): number {
    const keyId = usage.keyIds[row] ?? "";
    const accountId = usage.accountIds[row] ?? "";
    const appId = usage.appIds[row] ?? "";
    const from = second - (second % this.#seconds);
    const newest = this.#newest[row] ?? none;
    const known = this.#among(newest, accountId, appId, environment, model, from);
    // If another row of this batch has created the sum meanwhile, find it.
    return known !== none ? known : this.#find(keyId, accountId, appId, environment, model, undefined, from, second);
  }

  /** Adds the numbers of a stored sum: the sums of a roll-up row, its times, and the start of the span. */
  #addSum(keyId: string, { accountId, appId, environment, model, tag }: Whose, numbers: readonly number[]): void {
    const second = numbers[firstAt] ?? 0;
    const sum = this.#find(keyId, accountId, appId, environment, model, tag, numbers[start] ?? 0, second);
    const first = sum * stride;
    for (let i = 0; i < firstAt; i++) plus(this.#numbers, first + i, numbers[i] ?? 0);
    this.#widen(first, second);
    this.#widen(first, numbers[lastAt] ?? second);
  }

  /**
   * Returns the index of a sum, which is created if it does not exist. Allocates nothing for an existing one, because
   * it runs for each record.
   */
  #find(
    keyId: string,
    accountId: string,
    appId: string,
    environment: string,
    model: string,
    tag: string | undefined,
    from: number,
    second: number,
  ): number {
    const newest = this.#newestOf(keyId, tag);
    const known = this.#among(newest, accountId, appId, environment, model, from);
    if (known !== none) return known;
    const sum = this.size;
    this.#ofKey.set(nameOf(keyId, tag), sum);
    this.#before.push(newest);
    this.#keyIds.push(keyId);
    this.#whose.push(this.#shared({ accountId, appId, environment, model, tag }));
    this.#begin(sum * stride, from, second);
    return sum;
  }

  /** Returns the index of the sum with this key, searching back from `newest`. */
  #among(newest: number, accountId: string, appId: string, environment: string, model: string, from: number): number {
    for (let sum = newest; sum !== none; sum = this.#before[sum] ?? none) {
      const whose = this.#whoseAt(sum);
      if (
        this.#numbers[sum * stride + start] === from &&
        whose.model === model &&
        whose.environment === environment &&
        whose.appId === appId &&
        whose.accountId === accountId
      )
        return sum;
    }
    return none;
  }

  #shared(whose: Whose): Whose {
    const { accountId, appId, environment, model, tag } = whose;
    const name = `${nameOf(accountId, tag)} ${appId} ${environment} ${model}`;
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    this.#known.set(name, whose);
    return whose;
  }

  #begin(first: number, from: number, second: number): void {
    if (first + stride > this.#numbers.length) {
      const more = new Float64Array(this.#numbers.length * 2);
      more.set(this.#numbers);
      this.#numbers = more;
    }
    this.#numbers[first + start] = from;
    this.#numbers[first + firstAt] = second;
    this.#numbers[first + lastAt] = second;
  }

  #widen(first: number, second: number): void {
    const numbers = this.#numbers;
    if (second < (numbers[first + firstAt] ?? 0)) numbers[first + firstAt] = second;
    if (second > (numbers[first + lastAt] ?? 0)) numbers[first + lastAt] = second;
  }

  #whoseAt(sum: number): Whose {
    const whose = this.#whose[sum];
    if (whose === undefined) throw new RangeError(`There is no sum ${sum}.`);
    return whose;
  }
}

/** Adds a request to the numbers of `rollupColumns.sums`, which begin at `first`. */
export function addUsage(numbers: Float64Array, first: number, usage: UsageColumns, row: number): void {
  const generated = usage.number(row, completionTokens);
  plus(numbers, first, 1);
  plus(numbers, first + promptSum, usage.number(row, promptTokens));
  plus(numbers, first + completionSum, generated);
  const cost = usage.numberOrNull(row, nanoUsd);
  if (cost === null) plus(numbers, first + 12, 1);
  else plus(numbers, first + nanoUsdSum, cost);
  if (usage.kindAt(row).outcome === "failed") plus(numbers, first + 4, 1);
  if (usage.hasParts(row)) {
    plus(numbers, first + 9, usage.number(row, cachedTokens));
    plus(numbers, first + 10, usage.number(row, cacheWriteTokens));
    plus(numbers, first + 11, usage.number(row, reasoningTokens));
  }
  const firstToken = usage.numberOrNull(row, firstTokenMs);
  if (firstToken === null) return;
  const end = { completionTokens: generated, durationMs: usage.number(row, durationMs), firstTokenMs: firstToken };
  const generation = generationOf(end);
  plus(numbers, first + 5, 1);
  plus(numbers, first + 6, firstToken);
  plus(numbers, first + 7, generation?.tokens ?? 0);
  plus(numbers, first + 8, generation?.ms ?? 0);
}

function plus(numbers: Float64Array, index: number, value: number): void {
  numbers[index] = (numbers[index] ?? 0) + value;
}

/** Returns a unique name for a key, or for a key and tag. Ids contain no line break. */
function nameOf(id: string, tag: string | undefined): string {
  return tag === undefined ? id : `${id}\n${tag}`;
}

/** Number of sums after which a long loop yields. */
const pieceSums = 5_000;

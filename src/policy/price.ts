// Computes the cost of a request, exact to a billionth of a dollar: amounts are added as whole numbers and rounded
// once.
import { type Price, type PriceVariant, type RateName, type Rates, rates } from "../domain/models/price.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";
import { partsWithin, type UsageParts, type UsageUnits } from "../domain/usage/usage-parts.ts";

export type PricedUsage = Pick<TokenUsage, "promptTokens" | "completionTokens" | "parts">;

/** Maximum decimal places of a rate for tokens, of a rate for units, and of a factor. */
const [tokenDigits, eachDigits, factorDigits] = [9, 9, 6] as const;
/** Femto-USD (10^-15) for one token at a rate of one USD per million tokens. A nano-USD has a million femto-USD. */
const femtoPerRate = 10 ** tokenDigits;
const femtoPerNano = 1_000_000n;
const picoPerNano = 1_000;
const femtoPerUsd = 10n ** 15n;
/** The greatest sum of pico-USD that a number holds exactly. */
const largestExact = Number.MAX_SAFE_INTEGER;

/** Counts of tokens and units, one for each rate in the order of `rates`. */
type Counts = readonly number[];

/** The effective rates of a request, as whole numbers in the order of `rates`. */
interface Effective {
  /**
   * Pico-USD for each unit if all rates are whole pico-USD: numbers are then used instead of bigints, as long as they
   * are exact.
   */
  readonly pico: readonly number[] | undefined;
  /** Femto-USD for each unit, times `scale`. */
  readonly femto: readonly bigint[];
  readonly scale: bigint;
  /** The highest rates, computed on first use. */
  dearest: Dearest | undefined;
}

interface Dearest {
  readonly input: number;
  readonly media: number;
  readonly output: number;
}

interface Compiled {
  readonly variants: readonly PriceVariant[];
  /** The effective rates, by the set of variants that apply: one bit for each variant. */
  readonly effective: Map<number, Effective>;
}

/** The compiled prices; there are as many as in the catalog. */
const compiled = new WeakMap<Price, Compiled>();

/**
 * Returns the cost in whole nano-USD (10^-9), rounded half up; null if the model has no price. `atSeconds` is the
 * start of the request in Unix seconds, for prices that depend on the time.
 */
export function nanoUsdOf(usage: PricedUsage, price: Price | undefined, atSeconds: number): number | null {
  if (!price) return null;
  const effective = effectiveRates(usage, price, atSeconds);
  // The cost is limited in case a price is a mistake: PostgreSQL refuses a larger number, and with it all usage in the
  // same write.
  return Math.min(costOf(countsOf(usage), effective), Number.MAX_SAFE_INTEGER);
}

/** Returns a part of a price, 0 to 1, rounded half up. */
export function partOfPrice(nanoUsd: number, part: number): number {
  const millionths = BigInt(Math.round(part * 1_000_000));
  return Number((BigInt(nanoUsd) * millionths + 500_000n) / 1_000_000n);
}

/** The facts on which a request's cost depends, as known before the request is served. */
export interface PricedRequest {
  /** Estimated tokens of the prompt, which may be about a quarter too low. */
  promptTokens: number;
  completionTokens: number;
  /** Number of prompt tokens that are expected to be read from a cache. */
  cachedTokens: number;
  /** True if the prompt has images, audio or files. If false, none of its tokens belong to such media. */
  hasMedia: boolean;
  /** Tiers, speeds and regions that the request asks for. */
  asked: readonly string[];
  /** Units that are counted in addition to tokens, as far as the request shows. */
  units?: UsageUnits | undefined;
}

/** Factor that covers the error of a prompt estimate for nearly all texts. */
const estimateMargin = 1.25;

/**
 * Returns the maximum cost of a request that uses no more tokens than these. Any part of the prompt may be written to a
 * cache, any part of the answer may be reasoning, and the rates of a shorter prompt may apply. Searches, and tiers that
 * the request does not ask for, are not included. In whole nano-USD.
 */
export function maxNanoUsdOf(request: PricedRequest, price: Price | undefined, atSeconds: number): number {
  if (!price) return 0;
  const longest = Math.ceil(request.promptTokens * estimateMargin);
  let most = 0;
  for (const served of request.asked.length === 0 ? [request.asked] : subsetsOf(request.asked)) {
    const parts = served.length === 0 ? undefined : { ...noParts, details: { served } };
    const costAt = (promptTokens: number) =>
      maxAt(request, effectiveRates({ promptTokens, completionTokens: 0, parts }, price, atSeconds));
    most = Math.max(most, costAt(longest));
    // A shorter prompt may have other rates, which are not always lower.
    for (const { contextAbove } of price.variants ?? []) {
      if (contextAbove !== undefined && contextAbove < longest) most = Math.max(most, costAt(contextAbove));
    }
  }
  return Math.min(most, Number.MAX_SAFE_INTEGER);
}

function maxAt(request: PricedRequest, rated: Effective): number {
  const { promptTokens, completionTokens, cachedTokens, hasMedia, units } = request;
  const { input, media, output } = dearest(rated);
  const fresh = hasMedia ? media : input;
  const counts = [...noCounts];
  counts[cachedIndex] = cachedTokens;
  counts[fresh] = (counts[fresh] as number) + promptTokens - cachedTokens;
  counts[output] = completionTokens;
  counts[requestIndex] = 1;
  if (units) for (const [index, name] of unitIndexes) counts[index] = units[name] ?? 0;
  return costOf(counts, rated);
}

const noParts = { cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
const noCounts: Counts = rates.map(() => 0);
const indexOf = (name: RateName) => rates.findIndex((rate) => rate.name === name);
const [cachedIndex, requestIndex] = [indexOf("cachedInput"), indexOf("request")];
const unitIndexes = [
  [indexOf("document"), "documents"],
  [indexOf("searchUnit"), "searchUnits"],
  [indexOf("character"), "characters"],
  [indexOf("second"), "seconds"],
  [indexOf("image"), "images"],
] as const satisfies readonly (readonly [number, keyof UsageUnits])[];
const inputIndexes = (["input", "cachedInput", "cacheWrite", "cacheWriteHour"] as const).map(indexOf);
const mediaIndexes = [...inputIndexes, indexOf("inputAudio"), indexOf("inputImage")];
const outputIndexes = (["output", "reasoning", "outputAudio", "outputImage"] as const).map(indexOf);

/** Returns all subsets of the names, because any of the named tiers may serve the request. */
function subsetsOf(names: readonly string[]): string[][] {
  const sets: string[][] = [[]];
  for (const name of names) sets.push(...sets.map((set) => [...set, name]));
  return sets;
}

/** Returns the indexes of the highest rates for the prompt, for a prompt with media, and for the answer. */
function dearest(effective: Effective): Dearest {
  effective.dearest ??= {
    input: dearestOf(effective, inputIndexes),
    media: dearestOf(effective, mediaIndexes),
    output: dearestOf(effective, outputIndexes),
  };
  return effective.dearest;
}

function dearestOf({ femto }: Effective, indexes: readonly number[]): number {
  return indexes.reduce((best, index) => ((femto[index] as bigint) > (femto[best] as bigint) ? index : best));
}

/** Returns whole nano-USD. */
function costOf(counts: Counts, { pico, femto, scale }: Effective): number {
  if (pico) {
    let sum = 0;
    for (let i = 0; i < counts.length; i++) sum += (counts[i] as number) * (pico[i] as number);
    // All intermediate sums were whole numbers and smaller, so this sum is exact.
    if (sum <= largestExact) return Math.floor((sum + picoPerNano / 2) / picoPerNano);
  }
  let sum = 0n;
  for (let i = 0; i < counts.length; i++) sum += BigInt(counts[i] as number) * (femto[i] as bigint);
  const unit = femtoPerNano * scale;
  return Number((sum + unit / 2n) / unit);
}

/**
 * Counts each token once, by its rate. Servers seldom report which cached tokens were audio or images. Audio and image
 * tokens are therefore taken from the uncached tokens first, which costs more.
 */
function countsOf({ promptTokens, completionTokens, parts }: PricedUsage): Counts {
  // A request that used no tokens, such as one that failed immediately, is not charged.
  const requests = promptTokens + completionTokens > 0 ? 1 : 0;
  if (!parts) return [promptTokens, 0, 0, 0, 0, 0, completionTokens, 0, 0, 0, requests, 0, 0, 0, 0, 0, 0];
  const {
    cachedTokens,
    cacheWriteTokens,
    reasoningTokens,
    details = {},
  } = partsWithin(parts, promptTokens, completionTokens);
  const { cacheWriteHourTokens: writtenHour = 0, searches = 0 } = details;
  const units = unitIndexes.map(([, name]) => details[name] ?? 0);
  const fresh = promptTokens - cachedTokens - cacheWriteTokens;
  const inputAudio = Math.min(details.inputAudioTokens ?? 0, fresh);
  const inputImage = Math.min(details.inputImageTokens ?? 0, fresh - inputAudio);
  const outputAudio = Math.min(details.outputAudioTokens ?? 0, completionTokens - reasoningTokens);
  const outputImage = Math.min(details.outputImageTokens ?? 0, completionTokens - reasoningTokens - outputAudio);
  return [
    fresh - inputAudio - inputImage,
    cachedTokens,
    cacheWriteTokens - writtenHour,
    writtenHour,
    inputAudio,
    inputImage,
    completionTokens - reasoningTokens - outputAudio - outputImage,
    reasoningTokens,
    outputAudio,
    outputImage,
    units.some((count) => count > 0) ? 1 : requests,
    searches,
    ...units,
  ];
}

function effectiveRates({ promptTokens, parts }: PricedUsage, price: Price, atSeconds: number): Effective {
  let known = compiled.get(price);
  if (!known) {
    known = { variants: price.variants ?? [], effective: new Map() };
    compiled.set(price, known);
  }
  let holding = 0;
  for (let i = 0; i < known.variants.length; i++) {
    const variant = known.variants[i] as PriceVariant;
    if (holds(variant, promptTokens, parts, atSeconds)) holding |= 1 << i;
  }
  let effective = known.effective.get(holding);
  if (!effective) {
    effective = compile(
      price,
      known.variants.filter((_, i) => holding & (1 << i)),
    );
    known.effective.set(holding, effective);
  }
  return effective;
}

function holds(
  { contextAbove, served, from, hours, days }: PriceVariant,
  promptTokens: number,
  parts: UsageParts | undefined,
  atSeconds: number,
): boolean {
  if (contextAbove !== undefined && promptTokens <= contextAbove) return false;
  if (served !== undefined && !parts?.details?.served?.includes(served)) return false;
  if (from !== undefined && atSeconds < from) return false;
  if (!hours && !days) return true;
  const minute = Math.floor(atSeconds / 60) % 1_440;
  // The first day of 1970 was a Thursday.
  const day = (Math.floor(atSeconds / 86_400) + 4) % 7;
  const isOn = (one: number) => !days || days.includes(one);
  if (!hours) return isOn(day);
  return hours.some(({ start, end }) => {
    if (start < end) return minute >= start && minute < end && isOn(day);
    // A period that continues after midnight belongs to the day on which it begins.
    return (minute >= start && isOn(day)) || (minute < end && isOn((day + 6) % 7));
  });
}

function compile(price: Price, variants: readonly PriceVariant[]): Effective {
  const said: Rates = Object.assign({}, price, ...variants);
  const factors = variants.flatMap(({ factor }) => (factor === undefined ? [] : [factor]));
  const scale = 10n ** BigInt(factorDigits * factors.length);
  const product = factors.reduce((all, factor) => all * BigInt(Math.round(factor * 10 ** factorDigits)), 1n);
  const of = new Map<RateName | null, bigint>();
  const femto = rates.map(({ name, per, else: instead }) => {
    const rate = said[name];
    if (rate === undefined) {
      const other = of.get(instead) ?? 0n;
      of.set(name, other);
      return other;
    }
    const scaled = per === "tokens" ? wholeOf(rate * femtoPerRate) * product : eachOf(rate) * scale;
    of.set(name, scaled);
    return scaled;
  });
  const perPico = 1_000n * scale;
  const isWhole = femto.every((rate) => rate % perPico === 0n);
  return { pico: isWhole ? femto.map((rate) => Number(rate / perPico)) : undefined, femto, scale, dearest: undefined };
}

/** Returns a rate in USD as femto-USD. */
function eachOf(rate: number): bigint {
  return (wholeOf(rate * 10 ** eachDigits) * femtoPerUsd) / 10n ** BigInt(eachDigits);
}

/** A wrong price may be too large for an exact number; it is converted all the same. */
function wholeOf(value: number): bigint {
  return BigInt(Math.round(value));
}

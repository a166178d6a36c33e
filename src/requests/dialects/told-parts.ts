// What model servers tell of the parts of a usage, in the words of each of them.
import { nanoOfUsd } from "../../base/money.ts";
import type { UsageDetails, UsageParts } from "../../domain/usage/usage-parts.ts";

type Json = Readonly<Record<string, unknown>>;

/** What says that nothing else was served than what is usual. */
const usual: ReadonlySet<string> = new Set([
  "default",
  "standard",
  "auto",
  "on_demand",
  "none",
  "global",
  "not_available",
]);
const maxNameLength = 24;

export function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Names of the tier, speed and region, those that are usual left out. */
export function servedOf(...said: readonly unknown[]): readonly string[] | undefined {
  let told: string[] | undefined;
  for (const word of said) {
    if (typeof word !== "string" || word === "" || word.length > maxNameLength) continue;
    const name = word.toLowerCase();
    if (usual.has(name)) continue;
    told ??= [];
    told.push(name);
  }
  return told;
}

/** Nano-USD of what a vendor says that it charges: OpenRouter in USD, xAI in ticks, of which 10^10 are one. */
export function billedOf({ cost, cost_in_usd_ticks: ticks }: Json): number | undefined {
  const inTicks = countOf(ticks);
  if (inTicks !== undefined) return Math.round(inTicks / 10);
  return typeof cost === "number" && cost >= 0 && cost < 9e6 ? nanoOfUsd(cost) : undefined;
}

/** Members that say something; undefined where none does. */
export function detailsOf(said: UsageDetails): UsageDetails | undefined {
  let told: Record<string, unknown> | undefined;
  for (const name of Object.keys(said) as (keyof UsageDetails)[]) {
    if (said[name] === undefined || said[name] === 0) continue;
    told ??= {};
    told[name] = said[name];
  }
  return told;
}

/** The parts that were told; undefined where none was. */
export function partsOf(told: {
  cachedTokens?: number | undefined;
  cacheWriteTokens?: number | undefined;
  reasoningTokens?: number | undefined;
  details?: UsageDetails | undefined;
}): UsageParts | undefined {
  const { cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0, details } = told;
  if (cachedTokens + cacheWriteTokens + reasoningTokens === 0 && !details) return undefined;
  return { cachedTokens, cacheWriteTokens, reasoningTokens, details };
}

interface ToldOutput {
  readonly completionTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
}

/**
 * The tokens of an answer, and those of them that were thought. Some servers count what was thought beside the answer, which
 * the total tells: xAI says how much it was, and Google does not, and leaves out the answer where there is none behind it.
 */
export function outputOf(
  promptTokens: number | undefined,
  { completionTokens, reasoningTokens }: ToldOutput,
  totalTokens: number | undefined,
): ToldOutput {
  const visible = completionTokens ?? 0;
  const beside = totalTokens === undefined || promptTokens === undefined ? 0 : totalTokens - promptTokens - visible;
  const isThought = beside > 0 && (!reasoningTokens || reasoningTokens === beside);
  return isThought
    ? { completionTokens: visible + beside, reasoningTokens: beside }
    : { completionTokens, reasoningTokens };
}

// What model servers tell of the parts of a usage, in the words of each of them.
import type { UsageDetails, UsageParts } from "../domain/usage/usage-parts.ts";

type Json = Readonly<Record<string, unknown>>;

/** What says that nothing else was served than what is usual. */
const usual: ReadonlySet<string> = new Set(["default", "standard", "auto", "none", "global", "not_available"]);
const longestName = 24;
const mostNames = 3;

export function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Names of the tier, speed and region, those that are usual left out. */
export function servedOf(...said: readonly unknown[]): readonly string[] | undefined {
  const names = said.filter((name) => typeof name === "string").map((name) => name.toLowerCase());
  const told = names.filter((name) => name !== "" && name.length <= longestName && !usual.has(name));
  return told.length === 0 ? undefined : told.slice(0, mostNames);
}

/** Nano-USD of what a vendor says that it charges: OpenRouter in USD, xAI in ticks, of which 10^10 are one. */
export function billedOf({ cost, cost_in_usd_ticks: ticks }: Json): number | undefined {
  const inTicks = countOf(ticks);
  if (inTicks !== undefined) return Math.round(inTicks / 10);
  return typeof cost === "number" && cost >= 0 && cost < 9e6 ? Math.round(cost * 1e9) : undefined;
}

/** Members that say something; undefined where none does. */
export function detailsOf(said: UsageDetails): UsageDetails | undefined {
  const told = Object.entries(said).filter(([, value]) => value !== undefined && value !== 0);
  return told.length === 0 ? undefined : (Object.fromEntries(told) as UsageDetails);
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

/** The tokens of an answer; some servers (xAI, Google) count what was thought beside it, which the total tells. */
export function completionOf(
  promptTokens: number | undefined,
  completionTokens: number | undefined,
  reasoningTokens: number | undefined,
  totalTokens: number | undefined,
): number | undefined {
  if (promptTokens === undefined || completionTokens === undefined || !reasoningTokens) return completionTokens;
  const isBeside = totalTokens === promptTokens + completionTokens + reasoningTokens;
  return isBeside ? completionTokens + reasoningTokens : completionTokens;
}

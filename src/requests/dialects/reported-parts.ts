// Reads the parts of a reported usage, such as cached tokens. Each vendor has its own member names.
import { nanoOfUsd } from "../../base/money.ts";
import type { UsageDetails, UsageParts } from "../../domain/usage/usage-parts.ts";

type Json = Readonly<Record<string, unknown>>;

/** Names of standard tiers, speeds and regions. These names are not recorded. */
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

/** Returns the names of the tier, speed and region that served the request, without the standard ones. */
export function servedOf(...said: readonly unknown[]): readonly string[] | undefined {
  let names: string[] | undefined;
  for (const word of said) {
    if (typeof word !== "string" || word === "" || word.length > maxNameLength) continue;
    const name = word.toLowerCase();
    if (usual.has(name)) continue;
    names ??= [];
    names.push(name);
  }
  return names;
}

/**
 * Returns the cost that a vendor reports, in nano-USD. OpenRouter reports USD. xAI reports ticks, and 10^10 ticks are
 * one USD.
 */
export function billedOf({ cost, cost_in_usd_ticks: ticks }: Json): number | undefined {
  const inTicks = countOf(ticks);
  if (inTicks !== undefined) return Math.round(inTicks / 10);
  return typeof cost === "number" && cost >= 0 && cost < 9e6 ? nanoOfUsd(cost) : undefined;
}

/** Returns the details that are set and not zero, or undefined if there are none. */
export function detailsOf(said: UsageDetails): UsageDetails | undefined {
  let details: Record<string, unknown> | undefined;
  for (const name of Object.keys(said) as (keyof UsageDetails)[]) {
    if (said[name] === undefined || said[name] === 0) continue;
    details ??= {};
    details[name] = said[name];
  }
  return details;
}

/** Returns the reported parts, or undefined if none was reported. */
export function partsOf(reported: {
  cachedTokens?: number | undefined;
  cacheWriteTokens?: number | undefined;
  reasoningTokens?: number | undefined;
  details?: UsageDetails | undefined;
}): UsageParts | undefined {
  const { cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0, details } = reported;
  if (cachedTokens + cacheWriteTokens + reasoningTokens === 0 && !details) return undefined;
  return { cachedTokens, cacheWriteTokens, reasoningTokens, details };
}

interface ReportedOutput {
  readonly completionTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
}

/**
 * Returns the tokens of an answer and its reasoning tokens. Some servers do not include reasoning in the tokens of the
 * answer, so only the total shows the difference. xAI reports the reasoning tokens. Google does not report them, and
 * leaves out the tokens of an empty answer.
 */
export function outputOf(
  promptTokens: number | undefined,
  { completionTokens, reasoningTokens }: ReportedOutput,
  totalTokens: number | undefined,
): ReportedOutput {
  const visible = completionTokens ?? 0;
  const beside = totalTokens === undefined || promptTokens === undefined ? 0 : totalTokens - promptTokens - visible;
  const isThought = beside > 0 && (!reasoningTokens || reasoningTokens === beside);
  return isThought
    ? { completionTokens: visible + beside, reasoningTokens: beside }
    : { completionTokens, reasoningTokens };
}

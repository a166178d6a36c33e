// What a task used: what was told counts; tokens that nobody told are estimated, and other units counted in the request.
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { UsageUnits } from "../../domain/usage/usage-parts.ts";
import type { AskedRequest } from "../answer.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import { detailsOf, partsOf } from "../told-parts.ts";

/** More than so many times what the request tells is no account of it: sound that is packed most is about a hundredth of others. */
const mostTimes = 1_000;

/** `units`: as the request tells. `deliveredTokens`: of the answer, by an estimate. */
export function usageOfTask(
  told: ReplyUsage | undefined,
  units: UsageUnits | undefined,
  { promptTokens }: Pick<AskedRequest, "promptTokens">,
  deliveredTokens: number,
): TokenUsage {
  const isBelieved = !units || !told?.details || isPlausible(told.details, units);
  const parts = partsOf({ ...told, details: detailsOf({ ...units, ...told?.details, ...(isBelieved ? {} : units) }) });
  const { promptTokens: tokens, completionTokens = 0 } = told ?? {};
  if (tokens !== undefined) return { promptTokens: tokens, completionTokens, estimated: !isBelieved, parts };
  return { promptTokens, completionTokens: Math.max(completionTokens, deliveredTokens), estimated: true, parts };
}

function isPlausible(told: UsageUnits, asked: UsageUnits): boolean {
  const names = Object.keys(asked) as (keyof UsageUnits)[];
  return names.every((name) => (told[name] ?? 0) <= (asked[name] ?? 0) * mostTimes);
}

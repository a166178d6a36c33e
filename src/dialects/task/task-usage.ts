// What a task used: what was told counts; tokens that nobody told are estimated, and other units counted in the request.
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { UsageUnits } from "../../domain/usage/usage-parts.ts";
import type { AskedRequest } from "../answer.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import { detailsOf, partsOf } from "../told-parts.ts";

/** `units`: as the request tells. `deliveredTokens`: of the answer, by an estimate. */
export function usageOfTask(
  told: ReplyUsage | undefined,
  units: UsageUnits | undefined,
  { promptTokens }: Pick<AskedRequest, "promptTokens">,
  deliveredTokens: number,
): TokenUsage {
  const parts = partsOf({ ...told, details: detailsOf({ ...units, ...told?.details }) });
  const { promptTokens: tokens, completionTokens = 0 } = told ?? {};
  if (tokens !== undefined) return { promptTokens: tokens, completionTokens, estimated: false, parts };
  return { promptTokens, completionTokens: Math.max(completionTokens, deliveredTokens), estimated: true, parts };
}

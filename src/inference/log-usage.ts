// Log fields for the usage of an inference request.
import type { LogFields } from "../base/log.ts";
import type { Deployment } from "../domain/models/model.ts";
import { type Trail, wasAsked } from "../domain/usage/trail.ts";
import type { UsageEnd, UsageOutcome } from "../domain/usage/usage.ts";

/**
 * Adds the outcome, the deployments and the token counts of a request to its log line. `served` is the deployment that
 * answered.
 */
export function logEnd(
  line: Record<string, LogFields[string]>,
  outcome: UsageOutcome,
  { promptTokens, completionTokens, estimated, parts, upstream, trail }: UsageEnd,
  served?: Deployment,
): void {
  if (upstream !== null) line["upstream"] = upstream;
  if (served) line["upstream_model"] = served.model;
  const attempts = trail && attemptsIn(trail);
  if (attempts) line["attempts"] = attempts;
  line["outcome"] = outcome;
  line["prompt_tokens"] = promptTokens;
  line["completion_tokens"] = completionTokens;
  if (estimated) line["estimated"] = estimated;
  if (!parts) return;
  const { cachedTokens, cacheWriteTokens, reasoningTokens } = parts;
  if (cachedTokens > 0) line["cached_tokens"] = cachedTokens;
  if (cacheWriteTokens > 0) line["cache_write_tokens"] = cacheWriteTokens;
  if (reasoningTokens > 0) line["reasoning_tokens"] = reasoningTokens;
}

/** Returns the deployments that were tried, with their results. Returns undefined if every attempt was answered. */
function attemptsIn(trail: Trail): string | undefined {
  const asked = trail.filter(wasAsked);
  if (asked.every(({ result }) => result === "answered" || result === "cancelled")) return undefined;
  return asked
    .map(({ upstream, upstreamModel, result, status }) =>
      [`${upstream}/${upstreamModel}`, result, status].filter((part) => part !== null).join(" "),
    )
    .join(", ");
}

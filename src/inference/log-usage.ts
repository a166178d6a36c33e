// Log fields for the usage of an inference request.
import type { LogFields } from "../base/log.ts";
import type { TokenUsage, UsageOutcome } from "../domain/usage/usage.ts";

/** Adds the outcome and the token counts of a request to the fields of its log line. */
export function logEnd(
  line: Record<string, LogFields[string]>,
  outcome: UsageOutcome,
  { promptTokens, completionTokens, estimated, parts }: TokenUsage,
): void {
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

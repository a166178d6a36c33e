// The fields of a log line that say what an inference request used.
import type { LogFields } from "../base/log.ts";
import type { TokenUsage, UsageOutcome } from "../domain/usage/usage.ts";

/** Adds to a request's log line how the request ended, and its tokens. */
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

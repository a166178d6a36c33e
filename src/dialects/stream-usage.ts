// Usage of a stream as far as it went.
import type { TokenUsage } from "../domain/usage/usage.ts";
import type { AskedRequest, StreamObservation } from "./answer.ts";
import { atLeastDelivered } from "./least-usage.ts";
import { estimateTokens } from "./prompt-tokens.ts";

/** Longer pieces of a stream, on average, are no single tokens. */
const longestTokenBytes = 12;

/**
 * What was reported, else what is estimated from what was delivered. Where the stream did not come to its end, a report may
 * be of an earlier moment: then what was delivered since counts.
 */
export function streamUsage(request: AskedRequest, observed: StreamObservation, ended: boolean): TokenUsage {
  const { reported, deliveredBytes: bytes, deliveredPieces, context } = observed;
  const tokens = estimateDelivered(bytes, deliveredPieces);
  if (!reported) return { promptTokens: request.promptTokens, completionTokens: tokens, estimated: true };
  const isEarlier = !ended && reported.completionTokens < tokens;
  const usage = isEarlier ? { ...reported, completionTokens: tokens, estimated: true } : reported;
  return atLeastDelivered(usage, request, { bytes, tokens }, context);
}

/** Most servers send one token a piece, which is exact where it holds; pieces too long for that are counted by their bytes. */
function estimateDelivered(bytes: number, pieces: number): number {
  return bytes <= pieces * longestTokenBytes ? pieces : estimateTokens(bytes);
}

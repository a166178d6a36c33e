// Returns the usage of a stream up to the current point of the stream.
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { partsTogether } from "../../domain/usage/usage-parts.ts";
import type { AskedRequest, CutPart, StreamObservation } from "./answer.ts";
import { comparedUsage, provenUsage } from "./least-usage.ts";
import { estimateTokens } from "./prompt-tokens.ts";

/** Maximum average size in bytes of a piece that counts as a single token. */
const maxTokenBytes = 12;

/**
 * Returns the reported usage, or an estimate from the delivered text. If the stream broke off, the reported usage may
 * not include the last delivered text, so this text counts as well. If other servers continued the answer, returns the
 * sum of the tokens that each server read and wrote.
 */
export function streamUsage(request: AskedRequest, observed: StreamObservation, ended: boolean): TokenUsage {
  return observed.cut ? continuedUsage(request, observed, observed.cut, ended) : ownUsage(request, observed, ended);
}

/** Returns only the usage of the current server. `ended` is true if the stream completed. */
export function lastPartUsage(request: AskedRequest, observed: StreamObservation, ended = false): TokenUsage {
  const { cut, context } = observed;
  const own = ownUsage(request, { ...lastPart(observed), reportedPrompt: observed.reportedPrompt, context }, ended);
  if (!cut || observed.reported) return own;
  const before = continuedUsage(request, observed, cut, ended).completionTokens - own.completionTokens;
  return { ...own, promptTokens: observed.countedPrompts?.[cut.length] ?? own.promptTokens + before };
}

/** Returns the part of the answer that the current server has delivered. */
export function lastPart({ cut, reported, deliveredBytes, deliveredPieces }: StreamObservation): CutPart {
  let [bytes, pieces] = [deliveredBytes, deliveredPieces];
  for (const part of cut ?? []) {
    bytes -= part.deliveredBytes;
    pieces -= part.deliveredPieces;
  }
  return { reported, deliveredBytes: bytes, deliveredPieces: pieces };
}

function ownUsage(request: AskedRequest, observed: StreamObservation, ended: boolean): TokenUsage {
  const { reported, deliveredBytes: bytes, deliveredPieces, context } = observed;
  const tokens = estimateDelivered(bytes, deliveredPieces);
  const isEarlier = !ended && reported !== undefined && reported.completionTokens < tokens;
  const usage = isEarlier ? { ...reported, completionTokens: tokens, estimated: true } : reported;
  const compared = comparedUsage(usage, request, { bytes, tokens }, context);
  return usage === undefined && observed.reportedPrompt ? withReported(compared, observed.reportedPrompt) : compared;
}

/**
 * Uses the prompt tokens that the server reported first, unless they are below the estimate. Some servers begin with
 * figures of zero.
 */
function withReported(estimate: TokenUsage, reported: NonNullable<StreamObservation["reportedPrompt"]>): TokenUsage {
  return reported.promptTokens < estimate.promptTokens ? estimate : { ...estimate, ...reported };
}

/**
 * Adds up the usage of all servers that wrote a part of an answer. Each server reads the prompt and all text delivered
 * before it. If the prompt tokens of two consecutive servers are known, their difference is the number of tokens that
 * the first one wrote. If this difference is not credible, the first server's delivered pieces are counted, or its own
 * figure is used if that is higher.
 */
function continuedUsage(
  request: AskedRequest,
  observed: StreamObservation,
  cut: readonly CutPart[],
  ended: boolean,
): TokenUsage {
  const parts = [...cut, lastPart(observed)];
  const last = ownUsage(request, { ...lastPart(observed), context: observed.context }, ended);
  const known = parts.map((part, index) => part.reported?.promptTokens ?? observed.countedPrompts?.[index]);
  let estimated = last.estimated || known.includes(undefined);
  const written = parts.map(({ reported, deliveredBytes, deliveredPieces }, index) => {
    if (index === cut.length) return last.completionTokens;
    if (deliveredBytes === 0 && !reported) return 0;
    const [prompt, next] = [known[index], known[index + 1]];
    const between = prompt === undefined || next === undefined ? 0 : next - prompt;
    // A difference that is higher than the number of delivered bytes is not credible, because a token has at least one
    // byte.
    if (between > 0 && between <= deliveredBytes) return between;
    estimated = true;
    return Math.max(estimateDelivered(deliveredBytes, deliveredPieces), reported?.completionTokens ?? 0);
  });
  const prompts = [...known];
  for (let index = cut.length - 1; index >= 0; index--) {
    const next = prompts[index + 1];
    if (next !== undefined) prompts[index] ??= Math.max(1, next - (written[index] ?? 0));
  }
  let promptTokens = 0;
  let before = request.promptTokens;
  for (const [index, prompt] of prompts.entries()) {
    // If a server failed before the first output, its prompt tokens do not count.
    if (index === cut.length || hasCome(parts[index])) promptTokens += prompt ?? before;
    before = (prompt ?? before) + (written[index] ?? 0);
  }
  const completionTokens = written.reduce((sum, tokens) => sum + tokens, 0);
  const reportedParts = parts.flatMap(({ reported }) => (reported?.parts ? [reported.parts] : []));
  const understated = last.understated === true;
  const sum = { promptTokens, completionTokens, estimated, understated, parts: partsTogether(reportedParts) };
  const tokens = parts.reduce((all, part) => all + estimateDelivered(part.deliveredBytes, part.deliveredPieces), 0);
  return provenUsage(sum, request, { bytes: observed.deliveredBytes, tokens }, observed.context);
}

function hasCome(part: CutPart | undefined): boolean {
  return part !== undefined && (part.deliveredBytes > 0 || part.reported !== undefined);
}

/**
 * Counts pieces, because most servers send one token per piece. If the pieces are too long for this, counts by bytes.
 */
function estimateDelivered(bytes: number, pieces: number): number {
  return bytes <= pieces * maxTokenBytes ? pieces : estimateTokens(bytes);
}

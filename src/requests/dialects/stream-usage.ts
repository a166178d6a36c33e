// Usage of a stream as far as it went.
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { partsTogether } from "../../domain/usage/usage-parts.ts";
import type { AskedRequest, CutPart, StreamObservation } from "./answer.ts";
import { comparedUsage, provenUsage } from "./least-usage.ts";
import { estimateTokens } from "./prompt-tokens.ts";

/** Longer pieces of a stream, on average, are no single tokens. */
const maxTokenBytes = 12;

/**
 * What was reported, else what is estimated from what was delivered. Where the stream did not come to its end, a report may
 * be of an earlier moment: then what was delivered since counts. Of an answer that other servers went on with it is the sum of
 * what each of them has read and written.
 */
export function streamUsage(request: AskedRequest, observed: StreamObservation, ended: boolean): TokenUsage {
  return observed.cut ? continuedUsage(request, observed, observed.cut, ended) : ownUsage(request, observed, ended);
}

/** The same of the server alone that sends it now: what it has read and written. `ended`: left out: it did not come to its end. */
export function lastPartUsage(request: AskedRequest, observed: StreamObservation, ended = false): TokenUsage {
  const { cut, context } = observed;
  const own = ownUsage(request, { ...lastPart(observed), toldPrompt: observed.toldPrompt, context }, ended);
  if (!cut || observed.reported) return own;
  const before = continuedUsage(request, observed, cut, ended).completionTokens - own.completionTokens;
  return { ...own, promptTokens: observed.countedPrompts?.[cut.length] ?? own.promptTokens + before };
}

/** What came since the last of the parts that are over. */
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
  return usage === undefined && observed.toldPrompt ? withTold(compared, observed.toldPrompt) : compared;
}

/** Drops a prompt below the estimate, as servers may begin with figures of nothing yet. */
function withTold(estimate: TokenUsage, told: NonNullable<StreamObservation["toldPrompt"]>): TokenUsage {
  return told.promptTokens < estimate.promptTokens ? estimate : { ...estimate, ...told };
}

/**
 * A server reads the prompt and all that was delivered before it: so the prompts of two servers, where both are known, tell how
 * many tokens the first of them had written. Else one is taken for each piece.
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
    // A token is a byte at least.
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
    // One of which nothing came costs nothing, as where it fails before an answer.
    if (index === cut.length || hasCome(parts[index])) promptTokens += prompt ?? before;
    before = (prompt ?? before) + (written[index] ?? 0);
  }
  const completionTokens = written.reduce((sum, tokens) => sum + tokens, 0);
  const told = parts.flatMap(({ reported }) => (reported?.parts ? [reported.parts] : []));
  const understated = last.understated === true;
  const sum = { promptTokens, completionTokens, estimated, understated, parts: partsTogether(told) };
  const tokens = parts.reduce((all, part) => all + estimateDelivered(part.deliveredBytes, part.deliveredPieces), 0);
  return provenUsage(sum, request, { bytes: observed.deliveredBytes, tokens }, observed.context);
}

function hasCome(part: CutPart | undefined): boolean {
  return part !== undefined && (part.deliveredBytes > 0 || part.reported !== undefined);
}

/** Most servers send one token a piece, which is exact where it holds; pieces too long for that are counted by their bytes. */
function estimateDelivered(bytes: number, pieces: number): number {
  return bytes <= pieces * maxTokenBytes ? pieces : estimateTokens(bytes);
}

// Limits the size of an answer that is not streamed, according to the request.
import type { Model } from "../../domain/models/model.ts";
import { countTexts } from "../../wire/parts.ts";
import type { AskedRequest } from "./answer.ts";

const [kib, mib] = [1024, 1024 * 1024];
/**
 * Bytes up to which an answer is always accepted. This leaves space for pictures, audio and repeated prompts, which are
 * not counted in tokens.
 */
export const defaultAnswerBytes = 16 * mib;
/** Maximum bytes of an answer to any request. A batch of 2,048 long embeddings takes about 80 MB in JSON. */
const maxBytes = 128 * mib;
/**
 * Bytes that are allowed for each token. This is several times the JSON of a token of text, and of a token with its
 * probability and 20 alternatives.
 */
const bytesPerToken = 256;
const bytesPerTokenWithProbabilities = 8 * kib;
/** Number of tokens that is assumed if neither the request nor the model has a limit. */
const defaultTokens = 128 * kib;
/** Bytes of an embedding of 16,384 numbers in JSON. */
const bytesPerEmbedding = 512 * kib;

export function maxAnswerBytes(request: AskedRequest, { context }: Pick<Model, "context">): number {
  const { dialect, width, bodyBytes, maxCompletionTokens, body } = request;
  if (!dialect.generates) {
    const { n } = body;
    const items = Math.max(countTexts(body[dialect.promptMember]), typeof n === "number" ? n : 1);
    return Math.min(maxBytes, defaultAnswerBytes + items * Math.max(dialect.itemBytes, bytesPerEmbedding));
  }
  const { logprobs } = body;
  const perToken =
    logprobs === undefined || logprobs === null || logprobs === false ? bytesPerToken : bytesPerTokenWithProbabilities;
  const tokens = Math.max(0, maxCompletionTokens ?? context ?? defaultTokens);
  return Math.min(maxBytes, defaultAnswerBytes + 2 * bodyBytes + width * tokens * perToken);
}

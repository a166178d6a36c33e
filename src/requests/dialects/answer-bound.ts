// Limits the bytes of an answer that is not streamed, by what the request asks for.
import type { Model } from "../../domain/models/model.ts";
import { countTexts } from "../../wire/parts.ts";
import type { AskedRequest } from "./answer.ts";

const [kib, mib] = [1024, 1024 * 1024];
/**
 * Answers shorter than this are never checked. Leaves room for pictures, sound and echoed prompts, which are not
 * counted in tokens.
 */
export const defaultAnswerBytes = 16 * mib;
/** The limit for any request. A batch of 2,048 long embeddings in JSON is about 80 MB. */
const maxBytes = 128 * mib;
/**
 * Bytes allowed per token: several times the JSON bytes of a token of text, and of a token with its probability and 20
 * alternatives.
 */
const bytesPerToken = 256;
const bytesPerTokenWithProbabilities = 8 * kib;
/** Number of tokens if neither the request nor the model sets a limit. */
const defaultTokens = 128 * kib;
/** Bytes in JSON of an embedding of 16,384 numbers. */
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

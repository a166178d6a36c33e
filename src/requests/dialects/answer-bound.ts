// How long a whole answer may be, by what was asked for: what is longer, no use of the request explains.
import type { Model } from "../../domain/models/model.ts";
import { countTexts } from "../../wire/parts.ts";
import type { AskedRequest } from "./answer.ts";

const [kib, mib] = [1024, 1024 * 1024];
/** Within it no answer is looked at. What is not counted in tokens: pictures and sound that a model makes, and prompts that are echoed. */
export const defaultAnswerBytes = 16 * mib;
/** Whatever was asked for. A batch of 2,048 long embeddings in JSON comes to about 80 MB. */
const maxBytes = 128 * mib;
/** Several times what a token of text takes in JSON; and what its probabilities take, with 20 others beside each. */
const bytesPerToken = 256;
const bytesPerTokenWithProbabilities = 8 * kib;
/** Where neither the request nor the model says how many there may be. */
const defaultTokens = 128 * kib;
/** An embedding of 16,384 numbers in JSON. */
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

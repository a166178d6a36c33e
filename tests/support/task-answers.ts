// What model servers answer to tasks: the usage as each of them tells it.

type Json = Record<string, unknown>;

const model = "engines-own-name";

/** By the path at the server. */
export const taskAnswers: Readonly<Record<string, (body: Json) => Json>> = {
  "/v1/rerank": ({ documents }) => ({
    id: "rerank-1",
    model,
    results: (Array.isArray(documents) ? documents : [documents]).map((_, index) => ({
      index,
      relevance_score: 1 / (1 + index),
    })),
    usage: { prompt_tokens: 61, total_tokens: 61 },
  }),
  "/v1/score": () => ({
    id: "score-1",
    object: "list",
    model,
    data: [{ index: 0, object: "score", score: 0.5 }],
    usage: { prompt_tokens: 47, total_tokens: 47 },
  }),
  "/v1/moderations": () => ({
    id: "modr-1",
    model,
    results: [{ flagged: false, categories: { hate: false }, category_scores: { hate: 0.01 } }],
  }),
  // vLLM's; it has no version of the API in these paths.
  "/tokenize": () => ({ count: 3, max_model_len: 4096, tokens: [791, 2010, 9520] }),
  "/detokenize": () => ({ prompt: "The headrace" }),
  "/v1/decisions": () => ({
    answers: [{ type: "predicate", name: "billing", probability: 0.9 }],
    model,
    usage: { input_tokens: 80, output_tokens: 3, total_tokens: 83, input_tokens_details: { cached_tokens: 16 } },
  }),
};

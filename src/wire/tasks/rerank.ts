// Schemas for reranking and scoring, as in the APIs of Cohere, Jina, vLLM, llama-server and SGLang.
import { z } from "zod";
import { modelId } from "../parts.ts";

/** A text, or another input that a model server knows, such as an image. */
const passage = z.union([z.string(), z.looseObject({})]);
const passages = z.union([z.array(passage).min(1).max(10_000), z.looseObject({})]);
const user = z.string().max(1024).nullish().describe("Your own id of the end user. Passed on to the model server.");

/** The body of `POST /rerank`, as in Cohere's API (version 2) and in Jina's. */
export const rerankRequest = z
  .looseObject({
    model: modelId,
    query: passage.describe("A string, or an object that the model server accepts."),
    documents: passages.describe("Documents. Each is a string or an object that the model server accepts."),
    top_n: z.int().min(0).nullish().describe("Number of best results to return. Default, and with 0: all."),
    return_documents: z
      .boolean()
      .nullish()
      .describe("True to return each document with its result. Some servers do not support this."),
    max_tokens_per_doc: z.int().min(1).nullish().describe("Truncate longer documents, if the server supports it."),
    user,
  })
  .meta({ id: "RerankRequest" });

export const rerankResult = z
  .looseObject({
    results: z.array(
      z.looseObject({
        index: z.int().describe("Index of the document in the request."),
        relevance_score: z.number(),
      }),
    ),
    model: z.string().optional(),
    usage: z.looseObject({ prompt_tokens: z.int().optional(), total_tokens: z.int().optional() }).optional(),
    meta: z.looseObject({}).optional().describe("Billed units, as Cohere reports them."),
  })
  .meta({ id: "RerankResult" });

const side = z.union([z.string(), z.array(z.union([z.string(), z.looseObject({})])).max(10_000), z.looseObject({})]);

/** The body of `POST /score`, as in vLLM, where the pairs have several names, and in SGLang. */
export const scoreRequest = z
  .looseObject({
    model: modelId,
    text_1: side
      .optional()
      .describe("One text, which is compared with each of `text_2`, or as many texts as in `text_2`."),
    text_2: side.optional(),
    data_1: side.optional().describe("Newer vLLM name of `text_1`."),
    data_2: side.optional(),
    queries: side.optional().describe("Other name of `text_1`, compared with `documents` or `items`."),
    documents: side.optional(),
    query: side.optional().describe("SGLang's name."),
    items: side.optional(),
    user,
  })
  .meta({ id: "ScoreRequest" });

export const scoreResult = z
  .looseObject({
    data: z.array(z.looseObject({ index: z.int(), score: z.number() })).optional(),
    scores: z.array(z.unknown()).optional().describe("SGLang's form of `data`."),
    model: z.string().optional(),
    usage: z.looseObject({ prompt_tokens: z.int().optional(), total_tokens: z.int().optional() }).optional(),
  })
  .meta({ id: "ScoreResult" });

// The shapes of comparisons: a model beside those that get a share of its requests.
import { z } from "zod";
import { comparisonKinds } from "../domain/usage/comparison.ts";
import { unixSeconds } from "./parts.ts";

const times = (what: string) =>
  z
    .object({ p50: z.int().nullable(), p95: z.int().nullable() })
    .describe(`${what}, in milliseconds: of half of the answers, and of 95 of 100, no more; null: nothing was timed.`);

const side = z
  .object({
    model: z.string(),
    requests: z.int(),
    errors: z.int().describe("Those that failed: they are in no figure of answers."),
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    cost: z.number().nullable().describe("USD; null where a request had no price."),
    first_token_ms: times("Time to the first token of streams"),
    duration_ms: times("Time to the end"),
    tokens_per_second: z
      .number()
      .nullable()
      .describe("Completion tokens by the time of their requests, without waits."),
    answer_tokens: z.number().nullable().describe("Mean completion tokens of an answer."),
  })
  .meta({ id: "ComparedModel" });

export const comparisonShape = z
  .object({
    object: z.literal("comparison"),
    kind: z
      .enum(comparisonKinds)
      .describe("`shadow`: of the requests that both answered. `split`: of those that each was given."),
    percent: z.number().describe("The share of the other model, as it is configured now."),
    start: unixSeconds,
    end: unixSeconds,
    own: side,
    other: side,
    partial: z.boolean().describe("Whether only the newest were looked at, as there are very many: ask for less time."),
  })
  .meta({ id: "Comparison" });
export type ComparisonWire = z.infer<typeof comparisonShape>;

export const comparisonList = z
  .object({ object: z.literal("list"), data: z.array(comparisonShape) })
  .meta({ id: "ComparisonList" });

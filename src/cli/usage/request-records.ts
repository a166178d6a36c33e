// The fields of a request's record that the commands read from the API.
import { z } from "zod";
import { allNames } from "./all-accounts.ts";

export const listedRequest = z.object({
  id: z.string(),
  at: z.number(),
  operation: z.string(),
  model: z.string().nullable(),
  key: z.string(),
  account: z.string().nullish(),
  app: z.string().nullable(),
  stream: z.boolean().nullable(),
  tags: z.array(z.string()).nullish(),
  outcome: z.string(),
  error_code: z.string().nullable(),
  error_status: z.number().nullish(),
  error_message: z.string().nullish(),
  prompt_tokens: z.number(),
  cached_tokens: z.number().nullish(),
  cache_write_tokens: z.number().nullish(),
  completion_tokens: z.number(),
  reasoning_tokens: z.number().nullish(),
  total_tokens: z.number(),
  estimated: z.boolean(),
  cost: z.number().nullable(),
  upstream: z.string().nullable(),
  from_cache: z.boolean().nullish(),
  attempts: z.number().nullish(),
  queue_ms: z.number(),
  first_token_ms: z.number().nullable(),
  duration_ms: z.number(),
  tokens_per_second: z.number().nullable(),
});

/** One attempt of a request. A newer server may send a `result` that this version does not know. */
const step = z.object({
  server: z.number().nullable(),
  model: z.string(),
  result: z.string(),
  status: z.number().nullable(),
  started_ms: z.number(),
  duration_ms: z.number(),
  upstream: z.string().nullable(),
  upstream_model: z.string().nullable(),
  reason: z.string().nullable(),
  left_out: z.number().nullish(),
});

const count = z.number().nullish();
const usageDetails = z.object({
  cache_write_1h_tokens: count,
  input_audio_tokens: count,
  input_image_tokens: count,
  output_audio_tokens: count,
  output_image_tokens: count,
  searches: count,
  documents: count,
  search_units: count,
  characters: count,
  seconds: count,
  images: count,
  bytes_in: count,
  bytes_out: count,
  tool_errors: count,
  served: z.array(z.string()).nullish(),
  billed: count,
});

export const requestDetail = listedRequest.extend({
  usage_details: usageDetails.nullish(),
  trail: z.array(step),
  names: allNames,
});

export type ListedRequest = z.infer<typeof listedRequest>;
export type RequestDetail = z.infer<typeof requestDetail>;
export type RequestStep = z.infer<typeof step>;

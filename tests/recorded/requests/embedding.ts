// Recorded embeddings.
import type { Models } from "../models.ts";
import { type Combination, changed, combined, type Feature } from "./combined.ts";
import { type Format, faultRequests, httpRequests, keyRequests, modelRequests, wrongRequests } from "./policies.ts";
import type { RecordedRequest } from "./request.ts";

const path = "/v1/embeddings";
const asking = (model: string, input = "How do I stream?") => ({ model, input });
const members =
  (more: Record<string, unknown>): Feature =>
  (body) =>
    void Object.assign(body, more);

const features: Readonly<Record<string, Feature>> = {
  plain: () => {},
  inputs: members({ input: ["One", "Two", "Three"] }),
  tokens: members({ input: [9, 8, 7] }),
  "token-lists": members({
    input: [
      [9, 8],
      [7, 6],
    ],
  }),
  objects: members({ input: [{ image: "https://example.com/a.png" }] }),
  spelt: members({ input: 'A "quoted" \\ word\n\u2028 \ud83d\ude80' }),
  floats: members({ encoding_format: "float" }),
  base64: members({ encoding_format: "base64" }),
  "other-encoding": members({ encoding_format: "ubinary" }),
  dimensions: members({ dimensions: 3 }),
  user: members({ user: "user-1" }),
  task: members({ task: "query", truncate: true, input_type: "query" }),
  nulls: members({ encoding_format: null, dimensions: null, user: null }),
  numbers: members({ extra: [1, 1.5, 1e21, -0.000001] }),
};

const combination: Combination = { ...{ seed: 5_000, count: 120, path, asking, features }, replies: ["plain"] };

const wrong: Readonly<Record<string, readonly unknown[]>> = {
  model: [undefined, "", 7],
  input: [undefined, [], 7, {}, [[]], [7, "a"], [-1], [1.5], [[7], "a"], null, "", [""], [true]],
  encoding_format: [7, "", "x".repeat(65)],
  dimensions: [0, -1, 1.5, 70_000, "a"],
  user: [7, "x".repeat(1025), {}],
  stream: [true],
  kv_transfer_params: [{ a: 1 }],
};

export function embeddingRequests(models: Models): RecordedRequest[] {
  const format: Format = { path, asking, streams: false, isTranslated: false };
  return [
    ...combined(models, combination),
    ...faultRequests(models, format),
    ...wrongRequests(format, wrong),
    ...changed(models, { ...combination, seed: 6_000, count: 70 }),
    ...keyRequests(format),
    ...modelRequests(format),
    ...httpRequests(format),
  ];
}

// Recorded legacy completions.
import type { Models } from "../models.ts";
import { sseRequests } from "./chat.ts";
import { type Combination, changed, combined, type Feature } from "./combined.ts";
import { type Format, faultRequests, httpRequests, keyRequests, modelRequests, wrongRequests } from "./policies.ts";
import { type RecordedRequest, recorded } from "./request.ts";

const path = "/v1/completions";
const asking = (model: string, prompt = "Once upon a time") => ({ model, prompt });
const members =
  (more: Record<string, unknown>): Feature =>
  (body) =>
    void Object.assign(body, more);

const features: Readonly<Record<string, Feature>> = {
  plain: () => {},
  stream: members({ stream: true }),
  usage: members({ stream: true, stream_options: { include_usage: true } }),
  "no-usage": members({ stream: true, stream_options: { include_usage: false } }),
  prompts: members({ prompt: ["One", "Two"] }),
  tokens: members({ prompt: [9, 8, 7] }),
  "token-lists": members({
    prompt: [
      [9, 8],
      [7, 6],
    ],
  }),
  spelt: members({ prompt: 'A "quoted" \\ word\n\u2028 \ud83d\ude80' }),
  suffix: members({ suffix: " The end." }),
  echo: members({ echo: true }),
  "only-echo": members({ echo: true, max_tokens: 0 }),
  choices: members({ n: 2 }),
  best: members({ best_of: 3, n: 2 }),
  logprobs: members({ logprobs: 2 }),
  stop: members({ stop: "END" }),
  stops: members({ stop: ["END", "\n\n"] }),
  "max-tokens": members({ max_tokens: 50 }),
  sampling: members({ temperature: 0.5, top_p: 0.9 }),
  penalties: members({ frequency_penalty: 0.5, presence_penalty: -1, logit_bias: { "50256": -100 } }),
  seed: members({ seed: 7 }),
  user: members({ user: "user-1" }),
  salt: members({ cache_salt: "salt", priority: 3 }),
  nulls: members({ temperature: null, stop: null, suffix: null, n: null }),
};

const combination: Combination = {
  ...{ seed: 3_000, count: 120, path, asking, features },
  replies: ["plain", "plain", "length", "empty", "uncounted", "cached", "strict", "spelt"],
};

const wrong: Readonly<Record<string, readonly unknown[]>> = {
  model: [undefined, "", 7],
  prompt: [undefined, [], 7, {}, [[]], [7, "a"], [-1], [1.5], [[7], "a"], null],
  suffix: [7],
  echo: ["yes"],
  temperature: [3, -1, "hot"],
  top_p: [1.5],
  n: [0, 1.5, 200],
  best_of: [0, 200, "a"],
  logprobs: [true, 30, -1],
  max_tokens: [-1, 1.5, "many"],
  stop: [7, [7], ""],
  stream: ["yes", 1],
  stream_options: [7, { include_usage: "yes" }],
  logit_bias: [{ a: 1 }, { "5": 200 }],
  frequency_penalty: [3],
  presence_penalty: ["a"],
  seed: ["a", 1.5],
  user: [7],
};

export function completionRequests(models: Models): RecordedRequest[] {
  const format: Format = { path, asking, streams: true, isTranslated: false };
  return [
    ...combined(models, combination),
    ...sseRequests(models, format, (name) => name.startsWith("legacy-")),
    ...faultRequests(models, format),
    ...wrongRequests(format, wrong),
    ...changed(models, { ...combination, seed: 4_000, count: 50 }),
    ...keyRequests(format),
    ...modelRequests(format),
    ...httpRequests(format),
    recorded("more choices than the best", { path, body: { ...asking("chat.plain"), n: 3, best_of: 2 } }),
  ];
}

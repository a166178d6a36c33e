// Lists the parts of a translated request that servers of the Responses API may refuse. `store: false` is never left
// out.
import { type Adaptation, looseSchemas, textValue } from "../conversation/adaptations.ts";
import { objectsOf } from "./json.ts";

export const responseAdaptations: readonly Adaptation[] = [
  {
    path: "include.*",
    only: "reasoning.encrypted_content",
    words: /\bencrypted content is not supported\b/i,
  },
  {
    path: "reasoning.effort",
    ignored: "reasoning",
    refusedValue: textValue,
  },
  {
    path: "reasoning.summary",
    ignored: "reasoning",
    refusedValue: textValue,
    words: /\bmust be verified to generate reasoning summar/i,
  },
  { path: "reasoning", ignored: "reasoning" },
  { path: "tools.*.strict", ignored: "strict" },
  looseSchemas(/^invalid schema for function\b/i),
  {
    name: "input without reasoning",
    ignored: "reasoning",
    isOnce: true,
    // The server refuses encrypted reasoning if another organization of the vendor made it.
    words: /\bencrypted content\b.{0,400}\bcould not be verified\b/is,
    rewrite: (body) => {
      const input = objectsOf(body["input"]);
      body["input"] = input.filter(({ type }) => type !== "reasoning");
      return input.some(({ type }) => type === "reasoning");
    },
  },
  { path: "text.verbosity", ignored: "verbosity", refusedValue: textValue },
  { path: "safety_identifier", ignored: "user", isOfClient: true },
  { path: "prompt_cache_key", ignored: "prompt_cache_key", isOfClient: true },
  { path: "service_tier", ignored: "service_tier", refusedValue: textValue },
  { path: "metadata", ignored: "metadata", isOfClient: true },
  // The default values of these members have the same effect as leaving the members out.
  { path: "parallel_tool_calls", only: true },
  { path: "temperature", only: 1 },
  { path: "top_p", only: 1 },
];

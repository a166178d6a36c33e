// Lists what servers of Responses may refuse in a translated request. `store: false` is never left out.
import type { Adaptation } from "../conversation/adaptations.ts";

export const responseAdaptations: readonly Adaptation[] = [
  {
    path: "include.*",
    only: "reasoning.encrypted_content",
    words: /\bencrypted content is not supported\b/i,
  },
  {
    path: "reasoning.effort",
    ignored: "reasoning",
    refusedValue: (value) => (typeof value === "string" ? value : undefined),
  },
  {
    path: "reasoning.summary",
    ignored: "reasoning",
    words: /\bmust be verified to generate reasoning summar/i,
  },
  { path: "reasoning", ignored: "reasoning" },
  { path: "tools.*.strict", ignored: "strict" },
  { path: "text.verbosity", ignored: "verbosity" },
  { path: "safety_identifier", ignored: "user" },
  { path: "prompt_cache_key", ignored: "prompt_cache_key" },
  { path: "service_tier", ignored: "service_tier" },
  { path: "metadata", ignored: "metadata" },
  // The defaults of these members have the same effect as none.
  { path: "parallel_tool_calls", only: true },
  { path: "temperature", only: 1 },
  { path: "top_p", only: 1 },
];

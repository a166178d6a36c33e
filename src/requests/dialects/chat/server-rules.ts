// Describes how chat requests must differ between servers. Known clouds refuse a whole request because of a member that
// other servers need.
import { isOpenaiHost } from "../../../domain/models/upstream-speech.ts";
import type { Json } from "./json-value.ts";

export interface ServerRules {
  /** Members of an assistant's message for its earlier reasoning. */
  readonly reasoning: readonly string[];
  /** True if the server accepts members that its API does not describe. */
  readonly takesMore: boolean;
  /**
   * Returns the nearest effort that the model knows. If a model knows no effort, it refuses the request, which is then
   * sent without effort.
   */
  effort(effort: string, model: string): string;
  /** Returns members that are added to the first call of each earlier answer. */
  readonly call?: (model: string) => Json;
}

const any = (effort: string): string => effort;

/**
 * The rules for unknown servers. vLLM since 0.16 and Ollama read only `reasoning`. llama-server, SGLang, DeepSeek and
 * the built-in engine read only `reasoning_content` (vllm-project/vllm#38488, ollama/ollama#18536). DeepSeek refuses
 * calls without this member.
 */
const usual: ServerRules = { reasoning: ["reasoning_content", "reasoning"], takesMore: true, effort: any };

const openai: ServerRules = { reasoning: [], takesMore: false, effort: any };

const known: readonly (readonly [host: string, rules: ServerRules])[] = [
  [
    "mistral.ai",
    {
      ...openai,
      effort: (effort) => (effort === "none" ? effort : "high"),
    },
  ],
  [
    "groq.com",
    {
      ...openai,
      effort: (effort, model) => (effort === "none" || !/qwen/.test(model) ? effort : "default"),
    },
  ],
  ["cerebras.ai", { ...openai, reasoning: ["reasoning"] }],
  ["fireworks.ai", { ...openai, reasoning: ["reasoning_content"] }],
  [
    "googleapis.com",
    {
      ...openai,
      effort: (effort, model) => (effort === "none" && !/2\.5-flash/.test(model) ? "low" : effort),
      // The value that Google accepts instead of a lost proof. Other formats cannot contain the proof, and Gemini 3
      // refuses calls without one (ai.google.dev/gemini-api/docs/thought-signatures).
      call: (model) =>
        /gemini/.test(model)
          ? { extra_content: { google: { thought_signature: "skip_thought_signature_validator" } } }
          : {},
    },
  ],
];

/** Returns the rules of the server at `host`. `host` is undefined if the server has no host name. */
export function rulesOf(host: string | undefined): ServerRules {
  if (host === undefined) return usual;
  if (isOpenaiHost(host)) return openai;
  return known.find(([name]) => host === name || host.endsWith(`.${name}`))?.[1] ?? usual;
}

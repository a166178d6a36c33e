// The parts of a loaded model, for the code that answers requests with it.
import type { ChatWrapper, Llama, LlamaContext, LlamaModel } from "node-llama-cpp";
import type { Batching } from "./batching.ts";
import type { Library } from "./library.ts";
import type { ModelFacts } from "./model-facts.ts";
import type { ReplySyntax } from "./reply/reply-format.ts";
import type { Frames } from "./request/frames.ts";
import type { SequencePool } from "./sequence-pool.ts";

export interface ModelRuntime {
  library: Library;
  llama: Llama;
  model: LlamaModel;
  modelId: string;
  facts: ModelFacts;
  /** Unix seconds. */
  created: number;
  /** Tokens of one sequence, prompt and reply together. */
  contextSize: number;
  /** Parallel generations. */
  parallel: number;
  threads: number;
  vocabularySize: number;
  /** A token stands for at most this many bytes of text. */
  maxTokenBytes: number;
  /**
   * Writes what the operator should know of an unexpected failure to the log: never what a client sent.
   * @param doing what was being done, e.g. "streaming the answer"
   */
  report: (doing: string, error: unknown) => void;
}

export interface Chat {
  wrapper: ChatWrapper;
  syntax: ReplySyntax;
}

/** A model that writes text. Other models only make embeddings. */
export interface Runtime extends ModelRuntime {
  context: LlamaContext;
  batching: Batching;
  /** The frames of all streamed answers. */
  frames: Frames;
  pool: SequencePool;
  /** Undefined if the file has no chat template. */
  chat: Chat | undefined;
  /** Tokens of a prompt that are evaluated at once. Adapts to the speed of the machine. */
  promptPortion: number;
  /** Since the start. Shows that the engine makes progress. */
  generatedTokens: number;
}

export function writesText(runtime: ModelRuntime | Runtime): runtime is Runtime {
  return "pool" in runtime;
}

// The parts of a loaded model, for those who answer requests with it.
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
  /** Generations side by side. */
  parallel: number;
  threads: number;
  vocabularySize: number;
  /** A token stands for at most so many bytes of text. */
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

/** A model that writes text; the others only make embeddings. */
export interface Runtime extends ModelRuntime {
  context: LlamaContext;
  batching: Batching;
  /** The frames of all answers that are streamed. */
  frames: Frames;
  pool: SequencePool;
  /** undefined: the file has no chat template. */
  chat: Chat | undefined;
  /** Tokens of a prompt that are evaluated in one go; follows the speed of the machine. */
  promptPortion: number;
  /** Since the start; shows that the engine gets on. */
  generatedTokens: number;
}

export function writesText(runtime: ModelRuntime | Runtime): runtime is Runtime {
  return "pool" in runtime;
}

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
  /** The modification time of the model's file, in Unix seconds. */
  created: number;
  /** The tokens of one sequence, prompt and reply together. */
  contextSize: number;
  /** The number of parallel generations. */
  parallel: number;
  threads: number;
  vocabularySize: number;
  /** The most bytes of text that a token stands for. */
  maxTokenBytes: number;
  /**
   * Writes what the operator should know of an unexpected failure to the log: never what a client sent. `doing` says
   * what was being done, e.g. "streaming the answer".
   */
  report: (doing: string, error: unknown) => void;
}

export interface Chat {
  wrapper: ChatWrapper;
  syntax: ReplySyntax;
}

/** A model that writes text. Other models make embeddings or rank texts. */
export interface Runtime extends ModelRuntime {
  context: LlamaContext;
  batching: Batching;
  /** The frames of all streamed answers. */
  frames: Frames;
  pool: SequencePool;
  /** The chat format of the model. Undefined if the file has no chat template. */
  chat: Chat | undefined;
  /** The number of tokens of a prompt that are evaluated at once. It adapts to the speed of the machine. */
  promptPortion: number;
  /** The tokens generated since the start, which show that the engine makes progress. */
  generatedTokens: number;
}

export function writesText(runtime: ModelRuntime | Runtime): runtime is Runtime {
  return "pool" in runtime;
}

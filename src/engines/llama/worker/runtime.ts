// A loaded model and its context, shared by all request handlers of the worker.
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
  /** The maximum number of parallel generations. */
  parallel: number;
  threads: number;
  vocabularySize: number;
  /** The length in bytes of the longest token's text. */
  maxTokenBytes: number;
  /**
   * Logs an unexpected failure for the operator, without any client data. `doing` says what was being done, e.g.
   * "streaming the answer".
   */
  report: (doing: string, error: unknown) => void;
}

export interface Chat {
  wrapper: ChatWrapper;
  syntax: ReplySyntax;
}

/** A loaded model that generates text. Other models make embeddings or rank texts. */
export interface Runtime extends ModelRuntime {
  context: LlamaContext;
  batching: Batching;
  /** Schedules the writes of all streamed answers. */
  frames: Frames;
  pool: SequencePool;
  /** The chat format of the model. Undefined if the file has no chat template. */
  chat: Chat | undefined;
  /** The number of prompt tokens that are evaluated at once. Adapts to the speed of the machine. */
  promptPortion: number;
  /** The number of tokens generated since the start, which shows that the engine makes progress. */
  generatedTokens: number;
}

export function writesText(runtime: ModelRuntime | Runtime): runtime is Runtime {
  return "pool" in runtime;
}

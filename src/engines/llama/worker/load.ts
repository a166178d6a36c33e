// Loads node-llama-cpp and one model, and creates the context that all sequences share.
import type { LlamaModel } from "node-llama-cpp";
import { availableMemoryBytes } from "../machine-memory.ts";
import { Batching } from "./batching.ts";
import { type Library, loadLibrary } from "./library.ts";
import { checkModelFile, factsOf, ModelFileError, readModelFacts } from "./model-facts.ts";
import { readReplySyntax } from "./reply/reply-format.ts";
import { Frames } from "./request/frames.ts";
import type { Chat, ModelRuntime, Runtime } from "./runtime.ts";
import { SequencePool } from "./sequence-pool.ts";
import type { WorkerSettings } from "./settings.ts";
import { chooseShape } from "./sizing.ts";
import { chooseThreads, mostThreads } from "./threads.ts";

const firstPromptPortion = 64;
/**
 * A harmless warning of llama.cpp, which is not logged: the embedding context has one token more than the model was
 * trained for, but never uses it.
 */
const harmlessLine = /n_ctx_seq \(\d+\) > n_ctx_train/;

export interface LoadHooks {
  log: (line: string) => void;
  /** Called if the context is broken and only a new process helps. */
  giveUp: (error: unknown) => void;
}

/**
 * Loads a model. Returns a Runtime if the model generates text, or else a ModelRuntime. Rejects with a
 * ModelFileError that tells the operator why.
 */
export async function load(settings: WorkerSettings, { log, giveUp }: LoadHooks): Promise<ModelRuntime | Runtime> {
  const { modelPath } = settings;
  const { sizeBytes, modified } = await checkModelFile(modelPath);
  if (settings.gpu === false) checkMemory(sizeBytes);
  const library = await loadLibrary(settings.libraryPath);
  // llama.cpp writes the reason of a failure only to its log.
  let reason = "";
  const llama = await library.getLlama({
    gpu: settings.gpu,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    maxThreads: settings.threads ?? mostThreads,
    logLevel: library.LlamaLogLevel.warn,
    logger: (level, message) => {
      const line = message.trim();
      if (harmlessLine.test(line)) return;
      reason ||= /error loading model: (.*)/.exec(line)?.[1] ?? "";
      log(`${level}: ${line}`);
    },
  });
  try {
    const model = await llama.loadModel({ modelPath });
    const facts = factsOf(library, model.fileInfo);
    const threads =
      settings.threads ?? (facts.capabilities.completion ? await chooseThreads(model, mostThreads) : mostThreads);
    const { contextSize, sequences } = await chooseShape(llama, model, {
      contextSize: settings.context,
      sequences: facts.capabilities.completion ? settings.parallel : 1,
      most: settings.most,
    });
    const tokens = model.fileInfo.metadata.tokenizer.ggml.tokens;
    const runtime: ModelRuntime = {
      library,
      llama,
      model,
      modelId: settings.modelId,
      facts,
      created: Math.floor(modified.getTime() / 1000),
      contextSize,
      parallel: sequences,
      threads,
      vocabularySize: tokens.length,
      report: (doing, error) => log(`error: unexpected failure while ${doing}: ${errorText(error)}`),
      maxTokenBytes: tokens.reduce((longest, token) => Math.max(longest, Buffer.byteLength(token)), 1),
    };
    if (!facts.capabilities.completion) return runtime;
    const batching = new Batching();
    const context = await model.createContext({ contextSize, sequences, threads, batching: batching.options });
    return {
      ...runtime,
      contextSize: context.contextSize,
      context,
      batching,
      frames: new Frames(batching),
      pool: new SequencePool(context, batching, giveUp),
      chat: facts.capabilities.chat ? readChat(library, model, facts.chatTemplate ?? "") : undefined,
      promptPortion: firstPromptPortion,
      generatedTokens: 0,
    };
  } catch (error) {
    // Reading the header again throws a clearer error if the header is incomplete.
    await readModelFacts(library, modelPath);
    reason ||= error instanceof Error ? error.message : String(error);
    throw new ModelFileError(`The model ${modelPath} could not be loaded: ${reason}`, { cause: error });
  }
}

/**
 * Returns the message of an error and the function that threw it, because messages of node-llama-cpp are short
 * ("Object is disposed").
 */
function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const frame = /^[ \t]*at (?:async )?([\w.#<>]+)/m.exec(error.stack ?? "")?.[1];
  return `${error.name}: ${error.message}${frame === undefined ? "" : ` (in ${frame})`}`;
}

function readChat(library: Library, model: LlamaModel, template: string): Chat {
  const wrapper = library.resolveChatWrapper(model, { warningLogs: false });
  return { wrapper, syntax: readReplySyntax(library, wrapper, template) };
}

/** Throws if the model does not fit into memory. Reading its weights from disk for every token would be too slow. */
function checkMemory(sizeBytes: number): void {
  const available = availableMemoryBytes();
  if (sizeBytes <= available) return;
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  throw new ModelFileError(
    `The model needs ${gigabytes(sizeBytes)} of memory and ${gigabytes(available)} are free. ` +
      "Free some memory, or take a smaller model or quantization.",
  );
}

// Loads the library and one model, and creates the context that its sequences share.
import type { LlamaModel } from "node-llama-cpp";
import { type Library, loadLibrary } from "./library.ts";
import { checkModelFile, factsOf, ModelFileError } from "./model-facts.ts";
import { readReplySyntax } from "./reply-format.ts";
import type { ModelRuntime, Runtime } from "./runtime.ts";
import { SequencePool } from "./sequence-pool.ts";
import type { WorkerSettings } from "./settings.ts";
import { availableMemoryBytes, chooseShape } from "./sizing.ts";
import { chooseThreads, mostThreads } from "./threads.ts";

const firstPromptPortion = 64;

/** A Runtime where the model writes text, else only a ModelRuntime. Rejects with a ModelFileError for the operator. */
export async function load(settings: WorkerSettings, log: (line: string) => void): Promise<ModelRuntime | Runtime> {
  const { modelPath } = settings;
  const { sizeBytes, modified } = await checkModelFile(modelPath);
  if (settings.gpu === false) checkMemory(sizeBytes);
  const library = await loadLibrary(settings.libraryPath);
  // llama.cpp tells the reason of a failure only in its log.
  let lastLine = "";
  const llama = await library.getLlama({
    gpu: settings.gpu,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    maxThreads: settings.threads ?? mostThreads,
    logLevel: library.LlamaLogLevel.warn,
    logger: (level, message) => {
      lastLine = message.trim().replaceAll(/\s*\n\s*/g, " ");
      log(`${level}: ${lastLine}`);
    },
  });
  try {
    const model = await llama.loadModel({ modelPath });
    const facts = factsOf(library, model.fileInfo);
    const threads = settings.threads ?? (facts.capabilities.completion ? await chooseThreads(model) : mostThreads);
    const { contextSize, sequences } = await chooseShape(llama, model, {
      contextSize: settings.context,
      sequences: facts.capabilities.completion ? settings.parallel : 1,
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
      report: (error) => log(`error: ${error instanceof Error ? error.message : String(error)}`),
      longestTokenBytes: tokens.reduce((longest, token) => Math.max(longest, Buffer.byteLength(token)), 1),
    };
    if (!facts.capabilities.completion) return runtime;
    const context = await model.createContext({ contextSize, sequences, threads });
    return {
      ...runtime,
      contextSize: context.contextSize,
      context,
      pool: new SequencePool(context),
      chat: facts.capabilities.chat ? readChat(library, model, facts.chatTemplate ?? "") : undefined,
      promptPortion: firstPromptPortion,
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const detail = lastLine === "" || lastLine === reason ? "" : ` (${lastLine})`;
    throw new ModelFileError(`The model ${modelPath} could not be loaded: ${reason}${detail}`, { cause: error });
  }
}

export function writesText(runtime: ModelRuntime | Runtime): runtime is Runtime {
  return "pool" in runtime;
}

function readChat(library: Library, model: LlamaModel, template: string): NonNullable<Runtime["chat"]> {
  const wrapper = library.resolveChatWrapper(model, { warningLogs: false });
  return { wrapper, syntax: readReplySyntax(library, wrapper, template) };
}

/** The weights have to be in memory: read from the disk again for every token they would answer no one in time. */
function checkMemory(sizeBytes: number): void {
  const available = availableMemoryBytes();
  if (sizeBytes <= available) return;
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  throw new ModelFileError(
    `The model needs ${gigabytes(sizeBytes)} of memory and ${gigabytes(available)} are free. ` +
      "Free some memory, or take a smaller model or quantization.",
  );
}

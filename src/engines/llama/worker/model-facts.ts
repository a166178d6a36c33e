// Reads the facts in a GGUF file: name, sizes, and the operations that the model supports.
import { stat } from "node:fs/promises";
import type { GgufFileInfo } from "node-llama-cpp";
import type { Library } from "./library.ts";

/**
 * The operations that a model supports. `rerank` is undefined for an embedding model, which cannot rank, but can score
 * by its embeddings.
 */
export interface ModelCapabilities {
  chat: boolean;
  completion: boolean;
  embeddings: boolean;
  rerank: boolean | undefined;
  tokenize: boolean;
}

export interface ModelFacts {
  architecture: string;
  name: string | undefined;
  author: string | undefined;
  /** The context length of the training, in tokens. */
  context: number | undefined;
  embeddingLength: number | undefined;
  parameters: number | undefined;
  /** The quantization that the file type names, e.g. `Q4_K_M`. */
  quantization: string | undefined;
  capabilities: ModelCapabilities;
  /** True if the chat template supports tools. */
  tools: boolean;
  chatTemplate: string | undefined;
}

/** A failure that the operator can fix. The message tells the operator what is wrong. */
export class ModelFileError extends Error {
  override readonly name = "ModelFileError";
}

/** Architectures that cannot generate text, only read it. */
const encoderOnly = /bert|gemma-embedding|t5encoder/;

/** The tensors by which node-llama-cpp recognizes a model trained for ranking. */
const rankingTensors: ReadonlySet<string> = new Set(["cls.weight", "cls.output.weight"]);

/** Reads the facts in a model's header. Rejects with a ModelFileError. */
export async function readModelFacts(library: Library, path: string): Promise<ModelFacts> {
  const { sizeBytes } = await checkModelFile(path);
  let info: GgufFileInfo;
  try {
    info = await library.readGgufFileInfo(path, { sourceType: "filesystem", logWarnings: false });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ModelFileError(`The header of ${path} is damaged or incomplete; get the file again (${reason}).`);
  }
  // node-llama-cpp reads zeros beyond the end of a file, so a truncated file would not fail.
  if (expectedBytes(info) > sizeBytes) throw new ModelFileError(`${path} is incomplete; get the file again.`);
  return factsOf(library, info);
}

/** Returns the least size that the complete file can have: the end of the header, or the start of the last tensor. */
function expectedBytes(info: GgufFileInfo): number {
  const header = info.infoEndOffset ?? 0;
  const lastStart = (info.tensorInfo ?? []).reduce((last, { offset }) => Math.max(last, Number(offset)), 0);
  return header + lastStart + 1;
}

/** Checks that the path is a GGUF file. Resolves to its size and modification time. Rejects with a ModelFileError. */
export async function checkModelFile(path: string): Promise<{ sizeBytes: number; modified: Date }> {
  const file = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw new ModelFileError(`There is no file at ${path}. Check the path of the model.`);
    throw new ModelFileError(
      `The file ${path} cannot be read (${error.code ?? error.message}). Check its permissions.`,
    );
  });
  if (!file.isFile()) throw new ModelFileError(`${path} is not a file. Name the .gguf file itself.`);
  const magic = await Bun.file(path).slice(0, 4).text();
  if (magic !== "GGUF") throw new ModelFileError(`${path} is not a GGUF file. Models have to be in the GGUF format.`);
  return { sizeBytes: file.size, modified: file.mtime };
}

export function factsOf(library: Library, info: GgufFileInfo): ModelFacts {
  const { general } = info.metadata;
  const { architecture } = general;
  const chatTemplate = info.metadata.tokenizer?.chat_template;
  const {
    context_length: context,
    embedding_length: embeddingLength,
    pooling_type: pooling,
  } = info.architectureMetadata;
  // Pooling 0 means none, and 4 ranks pairs of texts (llama.cpp, enum llama_pooling_type). Only 1 to 3 make one
  // vector of a text.
  const pools = pooling !== undefined && pooling > 0 && pooling < 4;
  const ranks = !pools && (info.fullTensorInfo ?? []).some(({ name }) => rankingTensors.has(name));
  const generates = !encoderOnly.test(architecture) && !ranks;
  const embeds = !ranks && (!generates || pools);
  const fileType = general.file_type;
  return {
    architecture,
    name: general.name,
    author: general.author,
    context,
    embeddingLength,
    parameters: countParameters(info),
    quantization: fileType === undefined ? undefined : library.GgufFileType[fileType]?.replace("MOSTLY_", ""),
    capabilities: {
      chat: generates && chatTemplate !== undefined && chatTemplate.trim() !== "",
      completion: generates,
      embeddings: embeds,
      rerank: embeds ? undefined : ranks,
      tokenize: true,
    },
    tools: /\btools\b/.test(chatTemplate ?? ""),
    chatTemplate,
  };
}

function countParameters(info: GgufFileInfo): number | undefined {
  if (info.fullTensorInfo === undefined) return undefined;
  return info.fullTensorInfo.reduce(
    (sum, { dimensions }) => sum + dimensions.reduce<number>((product, size) => product * Number(size), 1),
    0,
  );
}

// Reads the facts of a model from its GGUF files, such as its size and what determines its memory.
import { open, stat } from "node:fs/promises";
import { type GgufHeader, GgufIncomplete, GgufRefused, readGgufHeader } from "./header.ts";
import { quantizationName } from "./quantizations.ts";

export interface GgufFacts {
  architecture: string;
  /** The quantization that the file type names, for example `Q4_K_M`. */
  quantization: string | undefined;
  parameters: number;
  /** The context length of the training, in tokens. */
  context: number | undefined;
  /** The bytes of all files together. */
  fileBytes: number;
  /**
   * The number of tokens in the vocabulary; `embedding` is the number of values in a token's vector. Either is 0 if the
   * file does not say.
   */
  vocabulary: number;
  embedding: number;
  /** The number of values that the key-value cache has for each token, over all layers. */
  cachedPerToken: number;
}

const firstRead = 1024 * 1024;
/** The longest header that is read. A vocabulary of a quarter of a million tokens takes about ten megabytes. */
const maxHeaderLength = 64 * 1024 * 1024;

/** The largest plausible count, such as of layers or heads. `maxCachedPerToken` limits the numbers cached per token. */
const largestNumber = 2 ** 31;
const maxCachedPerToken = 1e9;

/** A cache of facts by the path, size and modification time of each file, because headers take long to read. */
const known = new Map<string, GgufFacts | GgufRefused>();
const maxKnown = 500;

/**
 * Reads the facts of a model. `paths` are all its files, the first part first. Rejects with a GgufRefused, or with the
 * disk's error.
 */
export async function readModelFile(paths: readonly string[]): Promise<GgufFacts> {
  const files = await Promise.all(paths.map((path) => stat(path)));
  const identity = JSON.stringify(paths.map((path, index) => [path, files[index]?.size, files[index]?.mtimeMs]));
  const found =
    known.get(identity) ??
    (await readHeaders(
      paths,
      files.reduce((sum, { size }) => sum + size, 0),
    ));
  if (known.size >= maxKnown) known.clear();
  known.set(identity, found);
  if (found instanceof GgufRefused) throw found;
  return found;
}

async function readHeaders(paths: readonly string[], fileBytes: number): Promise<GgufFacts | GgufRefused> {
  try {
    const headers = [];
    for (const path of paths) headers.push(await readHeader(path));
    const [first] = headers;
    if (!first) throw new GgufRefused("there is no file");
    return factsOf(first, { parameters: headers.reduce((sum, { parameters }) => sum + parameters, 0), fileBytes });
  } catch (error) {
    if (error instanceof GgufRefused) return error;
    throw error;
  }
}

/**
 * Returns the facts of files whose header cannot be read: only their size. An engine may still be able to read
 * them. Rejects with the disk's error.
 */
export async function unreadModelFile(paths: readonly string[]): Promise<GgufFacts> {
  const files = await Promise.all(paths.map((path) => stat(path)));
  const fileBytes = files.reduce((sum, { size }) => sum + size, 0);
  const unknown = { quantization: undefined, parameters: 0, context: undefined };
  return { architecture: "", ...unknown, fileBytes, vocabulary: 0, embedding: 0, cachedPerToken: 0 };
}

/**
 * Reads the header of a file. Each attempt reads four times as much as the one before, until the header is complete.
 */
async function readHeader(path: string): Promise<GgufHeader> {
  const handle = await open(path, "r");
  try {
    for (let length = firstRead; ; length *= 4) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, 0);
      try {
        return readGgufHeader(buffer.subarray(0, bytesRead));
      } catch (error) {
        if (!(error instanceof GgufIncomplete)) throw error;
        if (bytesRead < length) throw new GgufRefused("it ends within its header");
        if (length >= maxHeaderLength) throw new GgufRefused(`its header is longer than ${maxHeaderLength} bytes`);
      }
    }
  } finally {
    await handle.close();
  }
}

export function factsOf(header: GgufHeader, sums: Pick<GgufFacts, "parameters" | "fileBytes">): GgufFacts {
  const { metadata, lengths } = header;
  const architecture = metadata.get("general.architecture");
  if (typeof architecture !== "string") throw new GgufRefused("it does not say which architecture it has");
  const fileType = metadata.get("general.file_type");
  const number = (name: string) => {
    const value = metadata.get(`${architecture}.${name}`);
    return typeof value === "number" && Number.isInteger(value) && value > 0 && value < largestNumber
      ? value
      : undefined;
  };
  const embedding = number("embedding_length") ?? 0;
  return {
    architecture,
    quantization: typeof fileType === "number" ? quantizationName(fileType) : undefined,
    ...sums,
    context: number("context_length"),
    vocabulary: lengths.get("tokenizer.ggml.tokens") ?? 0,
    embedding,
    cachedPerToken: cachedPerToken(metadata, architecture, number, embedding),
  };
}

/**
 * Returns how many numbers are cached per token: over all layers, heads times the length of keys and values. The
 * number of heads may differ by layer.
 */
function cachedPerToken(
  metadata: GgufHeader["metadata"],
  architecture: string,
  number: (name: string) => number | undefined,
  embedding: number,
): number {
  const layers = number("block_count") ?? 0;
  const listed = metadata.get(`${architecture}.attention.head_count_kv`);
  const heads = number("attention.head_count") ?? 1;
  const each = number("attention.head_count_kv") ?? heads;
  const allHeads = Array.isArray(listed) ? listed.reduce((sum, one) => sum + Math.max(0, one), 0) : layers * each;
  const defaultLength = embedding / heads;
  const keys = number("attention.key_length") ?? defaultLength;
  const values = number("attention.value_length") ?? defaultLength;
  const cached = Math.ceil(allHeads * (keys + values));
  if (cached <= maxCachedPerToken) return cached;
  throw new GgufRefused(`it says to keep ${cached} numbers for each token`);
}

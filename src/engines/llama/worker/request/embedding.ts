// POST /embeddings: texts to vectors, one at a time on a context of its own that is made at the first request.
import type { LlamaEmbeddingContext, Token } from "node-llama-cpp";
import { availableMemoryBytes } from "../../machine-memory.ts";
import type { ModelRuntime } from "../runtime.ts";
import { usageOf } from "./answer.ts";
import type { Fields } from "./fields.ts";
import { invalid, overlong } from "./request-error.ts";
import { readTextInputs, type TextInput } from "./text-input.ts";

const largestContext = 8192;
const smallestContext = 256;

export class Embedder {
  readonly #runtime: ModelRuntime;
  #context: Promise<LlamaEmbeddingContext> | undefined;
  /** Tokens of an input. */
  #limit = 0;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(runtime: ModelRuntime) {
    this.#runtime = runtime;
  }

  async answer(fields: Fields, signal: AbortSignal): Promise<Response> {
    const { facts, model, modelId, vocabularySize } = this.#runtime;
    if (!facts.capabilities.embeddings) {
      throw invalid("This model makes no embeddings. Use a model whose capabilities include embeddings.");
    }
    const encoding = fields.oneOf("encoding_format", ["float", "base64"]) ?? "float";
    const size = model.embeddingVectorSize;
    if ((fields.integer("dimensions", 1, Number.MAX_SAFE_INTEGER) ?? size) !== size) {
      throw invalid(`dimensions must be ${size}: this model's embeddings have no other length.`);
    }
    const inputs = readTextInputs(fields, "input", vocabularySize);
    const value = fields.value("input");
    const single = !Array.isArray(value) || typeof value[0] === "number";
    const context = await this.#open();
    const lengths = inputs.map((input, index) => this.#measure(context, input, single ? "input" : `input[${index}]`));
    const vectors = await this.#inTurn(async () => {
      const made: string[] = [];
      for (const [index, input] of inputs.entries()) {
        signal.throwIfAborted();
        const { vector } = await context.getEmbeddingFor(tokensOrText(input));
        const json = encoding === "base64" ? `"${base64(unit(vector))}"` : JSON.stringify(unit(vector));
        made.push(`{"object":"embedding","index":${index},"embedding":${json}}`);
      }
      return made;
    });
    const { prompt_tokens, total_tokens } = usageOf(sum(lengths), 0);
    const body =
      `{"object":"list","data":[${vectors.join(",")}],"model":${JSON.stringify(modelId)},` +
      `"usage":${JSON.stringify({ prompt_tokens, total_tokens })}}`;
    return new Response(body, { headers: { "content-type": "application/json" } });
  }

  /** The number of tokens, those that the model's tokenizer adds included. */
  #measure(context: LlamaEmbeddingContext, input: TextInput, name: string): number {
    const { longestTokenBytes } = this.#runtime;
    if (input.length === 0) throw invalid(`${name} must not be empty.`);
    const hopeless = typeof input === "string" && input.length > this.#limit * longestTokenBytes;
    const count = hopeless
      ? Math.ceil(input.length / longestTokenBytes)
      : context.calculateInputLength(tokensOrText(input));
    if (count <= this.#limit) return count;
    throw overlong(`${name} comes to ${count} tokens; this model takes at most ${this.#limit}. Split the text.`, name);
  }

  #open(): Promise<LlamaEmbeddingContext> {
    this.#context ??= this.#create().catch((error: unknown) => {
      // Memory that is short now may be free at the next request.
      this.#context = undefined;
      throw error;
    });
    return this.#context;
  }

  async #create(): Promise<LlamaEmbeddingContext> {
    const { model, threads } = this.#runtime;
    let limit = Math.min(model.trainContextSize, largestContext);
    while (limit > smallestContext && !(await this.#fits(limit))) limit >>= 1;
    // The whole text has to be one batch, as pooling sees no more than that; the library keeps one place free.
    const context = await model.createEmbeddingContext({ contextSize: limit + 1, batchSize: limit + 1, threads });
    this.#limit = limit;
    return context;
  }

  async #fits(limit: number): Promise<boolean> {
    const { model } = this.#runtime;
    const { cpuRam } = await model.fileInsights.estimateContextResourceRequirementsV2({
      contextSize: limit + 1,
      batchSize: limit + 1,
      modelGpuLayers: model.gpuLayers,
      isEmbeddingContext: true,
    });
    return cpuRam <= availableMemoryBytes() / 2;
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#queue.then(work);
    this.#queue = turn.catch(() => undefined);
    return await turn;
  }
}

function tokensOrText(input: TextInput): string | Token[] {
  return typeof input === "string" ? input : [...input];
}

/** A vector of length one, so that the scalar product of two is their cosine, as clients of hosted models expect it. */
function unit(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector);
  return Array.from(new Float32Array(vector.map((value) => (length === 0 ? value : value / length))));
}

/** Little-endian float32. */
function base64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

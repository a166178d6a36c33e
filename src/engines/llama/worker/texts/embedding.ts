// POST /embeddings: computes the vectors of texts one after another, because the library reads one sequence per
// context.
import type { LlamaEmbeddingContext, Token } from "node-llama-cpp";
import { usageOf } from "../request/answer.ts";
import type { Fields } from "../request/fields.ts";
import { invalid, overlong } from "../request/request-error.ts";
import { readTextInputs, type TextInput } from "../request/text-input.ts";
import type { ModelRuntime } from "../runtime.ts";
import { SideContext } from "./side-context.ts";

/** A text and its path in the request, for error messages. */
export interface NamedText {
  text: TextInput;
  name: string;
}

export interface Vectors {
  /** Vectors of length one, in the order of the texts. */
  vectors: readonly number[][];
  tokens: number;
}

export class Embedder {
  readonly #runtime: ModelRuntime;
  readonly #side: SideContext<LlamaEmbeddingContext>;

  constructor(runtime: ModelRuntime) {
    this.#runtime = runtime;
    this.#side = new SideContext(runtime, (size) => runtime.model.createEmbeddingContext(size));
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
    const value = fields.value("input");
    const single = !Array.isArray(value) || typeof value[0] === "number";
    const inputs = readTextInputs(fields, "input", vocabularySize);
    const named = inputs.map((text, index) => ({ text, name: single ? "input" : `input[${index}]` }));
    const { vectors, tokens } = await this.vectorsOf(named, signal);
    const written = vectors.map((vector, index) => {
      const json = encoding === "base64" ? `"${base64(vector)}"` : JSON.stringify(vector);
      return `{"object":"embedding","index":${index},"embedding":${json}}`;
    });
    const { prompt_tokens, total_tokens } = usageOf(tokens, 0);
    const body =
      `{"object":"list","data":[${written.join(",")}],"model":${JSON.stringify(modelId)},` +
      `"usage":${JSON.stringify({ prompt_tokens, total_tokens })}}`;
    return new Response(body, { headers: { "content-type": "application/json" } });
  }

  /** Returns the vectors of texts. Rejects with a RequestError for a text that is empty or too long. */
  async vectorsOf(texts: readonly NamedText[], signal: AbortSignal): Promise<Vectors> {
    const context = await this.#side.open();
    const tokens = texts.reduce((sum, text) => sum + this.#measure(context, text), 0);
    const vectors = await this.#side.inTurn(async () => {
      const made: number[][] = [];
      for (const { text } of texts) {
        signal.throwIfAborted();
        made.push(unit((await context.getEmbeddingFor(tokensOrText(text))).vector));
      }
      return made;
    });
    return { vectors, tokens };
  }

  /** Returns the number of tokens of a text, including those that the tokenizer adds around it. */
  #measure(context: LlamaEmbeddingContext, { text, name }: NamedText): number {
    const { maxTokenBytes } = this.#runtime;
    const { limit } = this.#side;
    if (text.length === 0) throw invalid(`${name} must not be empty.`);
    const hopeless = typeof text === "string" && text.length > limit * maxTokenBytes;
    const count = hopeless ? Math.ceil(text.length / maxTokenBytes) : context.calculateInputLength(tokensOrText(text));
    if (count <= limit) return count;
    throw overlong(`${name} comes to ${count} tokens; this model takes at most ${limit}. Split the text.`, name);
  }
}

function tokensOrText(input: TextInput): string | Token[] {
  return typeof input === "string" ? input : [...input];
}

/**
 * Returns the vector scaled to length one. Clients of hosted models expect that the scalar product of two
 * vectors is their cosine.
 */
function unit(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector);
  return Array.from(new Float32Array(vector.map((value) => (length === 0 ? value : value / length))));
}

/** Returns the vector in base64, as little-endian float32 numbers. */
function base64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}

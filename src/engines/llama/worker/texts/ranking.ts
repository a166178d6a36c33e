// POST /rerank and /score: how well texts match, by a ranking model or by the cosine of embeddings.
import type { LlamaRankingContext, Token } from "node-llama-cpp";
import { usageOf } from "../request/answer.ts";
import { Fields, isObject } from "../request/fields.ts";
import { invalid, overlong } from "../request/request-error.ts";
import type { ModelRuntime } from "../runtime.ts";
import type { Embedder, NamedText } from "./embedding.ts";
import { SideContext } from "./side-context.ts";

/** The most documents in a request, as in the gateway. */
const maxDocuments = 10_000;
/** The largest share of a query-document pair's tokens that the query may take. */
const shareOfQuery = 0.5;

interface Written extends NamedText {
  text: string;
}

interface Pair {
  first: Written;
  second: Written;
}

interface Scores {
  scores: number[];
  tokens: number;
}

export class Ranker {
  readonly #runtime: ModelRuntime;
  readonly #embedder: Embedder;
  readonly #side: SideContext<LlamaRankingContext>;

  constructor(runtime: ModelRuntime, embedder: Embedder) {
    this.#runtime = runtime;
    this.#embedder = embedder;
    this.#side = new SideContext(runtime, (size) => runtime.model.createRankingContext(size));
  }

  async rerank(fields: Fields, signal: AbortSignal): Promise<Response> {
    const { facts, modelId } = this.#runtime;
    if (!facts.capabilities.rerank) {
      throw invalid(
        `\`${modelId}\` was not made to rank. Use a model whose capabilities include rerank, such as a bge-reranker.`,
        "model",
      );
    }
    const query = textOf(fields.value("query"), "query");
    const documents = textsOf(fields, "documents");
    const cut = fields.integer("max_tokens_per_doc", 1, Number.MAX_SAFE_INTEGER);
    const wanted = fields.integer("top_n", 0, Number.MAX_SAFE_INTEGER) || documents.length;
    const returns = fields.boolean("return_documents") ?? false;
    const pairs = documents.map((second) => ({ first: { text: query, name: "query" }, second }));
    const { scores, tokens } = await this.#ranked(pairs, cut, signal);
    const results = scores
      .map((relevance_score, index) => ({
        index,
        relevance_score,
        ...(returns ? { document: { text: documents[index]?.text } } : {}),
      }))
      .sort((one, other) => other.relevance_score - one.relevance_score)
      .slice(0, wanted);
    return Response.json({ model: modelId, results, usage: promptUsage(tokens) });
  }

  /**
   * Answers with a score for each pair of texts. A model that cannot rank scores by the cosine of two
   * embeddings, as vLLM does.
   */
  async score(fields: Fields, signal: AbortSignal): Promise<Response> {
    const { facts, modelId } = this.#runtime;
    const { rerank, embeddings } = facts.capabilities;
    if (!rerank && !embeddings) {
      throw invalid(
        `\`${modelId}\` scores nothing. Use a model whose capabilities include rerank or embeddings.`,
        "model",
      );
    }
    const pairs = pairsOf(fields);
    const { scores, tokens } = rerank ? await this.#ranked(pairs, undefined, signal) : await this.#near(pairs, signal);
    const data = scores.map((score, index) => ({ index, object: "score", score }));
    return Response.json({ object: "list", model: modelId, data, usage: promptUsage(tokens) });
  }

  async #ranked(pairs: readonly Pair[], cut: number | undefined, signal: AbortSignal): Promise<Scores> {
    const context = await this.#side.open();
    const { limit } = this.#side;
    const firsts = new Map<string, Token[]>();
    const read = pairs.map(({ first, second }) => {
      const query = firsts.get(first.text) ?? this.#tokensOf(first, Math.floor(limit * shareOfQuery));
      firsts.set(first.text, query);
      const all = this.#tokensOf(second, cut === undefined ? limit : Number.POSITIVE_INFINITY);
      const document = cut === undefined ? all : all.slice(0, cut);
      const tokens = context.calculateInputLength(query, document);
      if (tokens > limit) throw tooLong(second.name, tokens, limit);
      return { query, document, tokens };
    });
    const scores = await this.#side.inTurn(async () => {
      const made: number[] = [];
      for (const { query, document } of read) {
        signal.throwIfAborted();
        made.push(await context.rank(query, document));
      }
      return made;
    });
    return { scores, tokens: read.reduce((sum, { tokens }) => sum + tokens, 0) };
  }

  async #near(pairs: readonly Pair[], signal: AbortSignal): Promise<Scores> {
    const { vectors, tokens } = await this.#embedder.vectorsOf(
      pairs.flatMap(({ first, second }) => [first, second]),
      signal,
    );
    const scores = pairs.map((_, index) => product(vectors[2 * index] ?? [], vectors[2 * index + 1] ?? []));
    return { scores, tokens };
  }

  /**
   * Returns the tokens of a text. Throws for a text that is certainly too long without tokenizing it, because
   * that would delay other requests.
   */
  #tokensOf({ text, name }: Written, most: number): Token[] {
    const { model, maxTokenBytes } = this.#runtime;
    const { limit } = this.#side;
    const least = Math.ceil(text.length / maxTokenBytes);
    if (least > limit && most !== Number.POSITIVE_INFINITY) throw tooLong(name, least, most);
    const shown = most === Number.POSITIVE_INFINITY ? text.slice(0, limit * maxTokenBytes) : text;
    const tokens = model.tokenize(shown, false, "trimLeadingSpace");
    if (tokens.length > most) throw tooLong(name, tokens.length, most);
    return tokens;
  }
}

function tooLong(name: string, tokens: number, most: number): Error {
  return overlong(`${name} comes to ${tokens} tokens; this model takes at most ${most} here. Shorten it.`, name);
}

function promptUsage(tokens: number) {
  const { prompt_tokens, total_tokens } = usageOf(tokens, 0);
  return { prompt_tokens, total_tokens };
}

/** Reads the pairs of a request: one text with each of several, or two lists of equal length. */
function pairsOf(fields: Fields): Pair[] {
  const [firstName, secondName] = (
    [
      ["text_1", "text_2"],
      ["data_1", "data_2"],
      ["queries", "documents"],
    ] as const
  ).find(([name]) => fields.value(name) !== undefined) ?? ["text_1", "text_2"];
  const firsts = textsOf(fields, firstName);
  const seconds = textsOf(fields, secondName);
  if (firsts.length !== 1 && firsts.length !== seconds.length) {
    throw invalid(
      `${firstName} must be one text, or as many as ${secondName} (got ${firsts.length} and ${seconds.length}).`,
      firstName,
    );
  }
  return seconds.map((second, index) => ({ first: (firsts[index] ?? firsts[0]) as Written, second }));
}

function textsOf(fields: Fields, key: string): Written[] {
  const value = fields.value(key);
  const values = Array.isArray(value) ? value : [value];
  if (values.length === 0 || values.length > maxDocuments) {
    throw invalid(`${key} must hold 1 to ${maxDocuments} texts.`, key);
  }
  return values.map((one: unknown, index) => {
    const name = Array.isArray(value) ? `${key}[${index}]` : key;
    return { name, text: textOf(one, name) };
  });
}

function textOf(value: unknown, name: string): string {
  const text = isObject(value) ? new Fields(value, `${name}.`).string("text") : value;
  if (typeof text === "string") return text;
  throw invalid(`${name} must be a text: the built-in engine ranks nothing else.`, name);
}

function product(one: readonly number[], other: readonly number[]): number {
  return one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);
}

// Compares the usage that an engine reports with the maximum that the request can have used, because a node may err or
// lie.
import type { Model } from "../domain/models/model.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";

/** The facts that limit the usage of a request. */
export interface RequestBounds {
  /** UTF-8 bytes of the request body. */
  bodyBytes: number;
  /** True if the prompt has images, audio or files, whose token counts do not follow from the text. */
  hasMedia: boolean;
  /** Prompt tokens as estimated from the text. Default: 0. */
  promptTokens?: number;
  /** Token limit of each generation; undefined if the request has none; 0 if nothing is generated. */
  maxCompletionTokens: number | undefined;
  /** True if a model server can read no other token limit in the request. Default: true. */
  limitHolds?: boolean;
  /** Number of parallel generations, at least the number of prompts. */
  width: number;
  /** Number of times that a model reads the body. Default: 1. */
  readings?: number;
  /**
   * Reports whether a model server may read more than the body, such as search results or stored data. Default: it
   * reads only the body.
   */
  readsBeyond?(): boolean;
}

/** Maximum tokens that a chat template adds to the client's text: a default system prompt, preambles for tools. */
const templateTokens = 4_096;
/** Maximum tokens of a prompt if neither the body nor a context limits them. */
const largestPrompt = 10_000_000;
/**
 * Maximum number of times that a vendor reads the prompt: again after each tool that it runs, and the reported usage is
 * the sum.
 */
const maxTurns = 32;
/** Maximum tokens of a generation without another limit. */
const maxGenerationTokens = 262_144;

/** The maximum usage of a request. */
export interface UsageBounds extends Pick<TokenUsage, "promptTokens" | "completionTokens"> {
  /** Computes a higher maximum, used only if a prompt is reported to be longer than `promptTokens`. */
  widerPrompt?(): number;
}

/**
 * Computes the maximum usage. The length of the delivered text is no upper bound, because reasoning counts and often
 * is not delivered. Generated tokens are limited by the request or by the context; `clampUsage` raises this limit if
 * the delivered text is longer.
 */
export function usageBounds(model: Pick<Model, "context">, request: RequestBounds): UsageBounds {
  return new BoundsOfRequest(model, request);
}

class BoundsOfRequest implements UsageBounds {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly #request: RequestBounds;
  readonly #ofContext: number;

  constructor({ context }: Pick<Model, "context">, request: RequestBounds) {
    const { bodyBytes, hasMedia, width, readings = 1 } = request;
    const maxCompletionTokens = request.limitHolds === false ? undefined : request.maxCompletionTokens;
    // A token stands for at least one byte, even if the prompt is sent as numbers.
    const ofBody = hasMedia ? largestPrompt : Math.min(largestPrompt, readings * (bodyBytes + templateTokens));
    // Each input of an embedding request has its own context, and the number of inputs is unknown here.
    const ofContext = context === undefined || maxCompletionTokens === 0 ? largestPrompt : context * width * readings;
    // A server's model list may report a context that is too small, so the estimated prompt counts as well.
    const ofPrompt = Math.max(ofContext, (request.promptTokens ?? 0) * readings);
    this.promptTokens = Math.min(ofBody, ofPrompt);
    this.completionTokens = (maxCompletionTokens ?? context ?? maxGenerationTokens) * width;
    this.#request = request;
    this.#ofContext = ofContext;
  }

  widerPrompt(): number {
    if (!this.#request.readsBeyond?.()) return this.promptTokens;
    return Math.max(this.promptTokens, Math.min(largestPrompt, this.#ofContext * maxTurns));
  }
}

/**
 * Returns the usage itself, or a copy whose figures are lowered to the bounds. Completion tokens that the delivered
 * text proves are never lowered: in this case the model server ignored the limit.
 */
export function clampUsage(usage: TokenUsage, bounds: UsageBounds): TokenUsage {
  const isLonger = usage.promptTokens > bounds.promptTokens;
  const maxPrompt = isLonger && bounds.widerPrompt ? bounds.widerPrompt() : bounds.promptTokens;
  const promptTokens = Math.min(usage.promptTokens, maxPrompt);
  const completionTokens = usage.pastLimit
    ? usage.completionTokens
    : Math.min(usage.completionTokens, bounds.completionTokens);
  const capped = promptTokens < usage.promptTokens || completionTokens < usage.completionTokens;
  return capped ? { ...usage, promptTokens, completionTokens } : usage;
}

// Holds the usage that an engine reports against what the request can have used: a node may err or lie.
import type { Model } from "../domain/models/model.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";

/** What bounds the usage of a request. */
export interface RequestBounds {
  /** UTF-8 bytes of the request body. */
  bodyBytes: number;
  /** Whether the prompt holds images, audio or files, whose tokens the text does not tell. */
  hasMedia: boolean;
  /** Estimated from the text; left out: 0. */
  promptTokens?: number;
  /** For each generation; undefined where the request says nothing; 0 where nothing is generated. */
  maxCompletionTokens: number | undefined;
  /** True if that is the only limit that a model server can read in the request; left out: true. */
  limitHolds?: boolean;
  /** Generations side by side, and never less than the prompts. */
  width: number;
  /** How often a model reads what stands in the body once; left out: once. */
  readings?: number;
  /** Reports whether a model server may read more than the body: what it searches, fetches or keeps. Left out: it reads the body alone. */
  readsBeyond?(): boolean;
}

/** The most that a request can have used. */
export interface UsageBounds extends Pick<TokenUsage, "promptTokens" | "completionTokens"> {
  /** Works out the most of a prompt that is reported to be longer than `promptTokens`. */
  widerPrompt?(): number;
}

/** What a chat template adds to the client's text at most: a default system prompt, preambles for tools. */
const templateTokens = 4_096;
/** Tokens of a prompt whose size neither the body nor a context tells. */
const largestPrompt = 10_000_000;
/** A vendor that runs tools reads the prompt again after each of them, and reports the sum. */
const maxTurns = 32;
/** Tokens of one generation that nobody bounds. */
const maxGenerationTokens = 262_144;

/**
 * Reasoning is counted and often not delivered, so the length of the delivered text is no upper bound. What is generated is
 * bounded by what the request allows, or by the context. `believable` lifts that bound where the delivered text is longer.
 */
export function usageBounds({ context }: Pick<Model, "context">, request: RequestBounds): UsageBounds {
  const { bodyBytes, hasMedia, width, readings = 1 } = request;
  const maxCompletionTokens = request.limitHolds === false ? undefined : request.maxCompletionTokens;
  // A token stands for at least one byte, also where the prompt is sent as numbers.
  const ofBody = hasMedia ? largestPrompt : Math.min(largestPrompt, readings * (bodyBytes + templateTokens));
  // Each of several inputs to embed has a context of its own, and their number is not known here.
  const ofContext = context === undefined || maxCompletionTokens === 0 ? largestPrompt : context * width * readings;
  // A model list may state a context that is too small: the text of the request is known.
  const ofPrompt = Math.max(ofContext, (request.promptTokens ?? 0) * readings);
  const promptTokens = Math.min(ofBody, ofPrompt);
  return {
    promptTokens,
    completionTokens: (maxCompletionTokens ?? context ?? maxGenerationTokens) * width,
    widerPrompt: () =>
      request.readsBeyond?.() ? Math.max(promptTokens, Math.min(largestPrompt, ofContext * maxTurns)) : promptTokens,
  };
}

/**
 * Returns the usage itself, or a copy whose figures are brought down to the bounds. Completion tokens that the delivered
 * text proves are never brought down: then the model server has ignored the limit.
 */
export function believable(usage: TokenUsage, bounds: UsageBounds): TokenUsage {
  const isLonger = usage.promptTokens > bounds.promptTokens;
  const maxPrompt = isLonger && bounds.widerPrompt ? bounds.widerPrompt() : bounds.promptTokens;
  const promptTokens = Math.min(usage.promptTokens, maxPrompt);
  const completionTokens = usage.pastLimit
    ? usage.completionTokens
    : Math.min(usage.completionTokens, bounds.completionTokens);
  const capped = promptTokens < usage.promptTokens || completionTokens < usage.completionTokens;
  return capped ? { ...usage, promptTokens, completionTokens } : usage;
}

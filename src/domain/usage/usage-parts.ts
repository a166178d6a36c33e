// Parts of a request's tokens that have prices of their own, as the model server reported them.

/**
 * Whole numbers. Each is a part of a total, such as `cachedTokens` of the prompt tokens. Zero means that there is no
 * such part.
 */
export interface UsageParts {
  /**
   * Prompt tokens that were read from a cache. `cacheWriteTokens`: those written to a cache, including those written
   * for an hour.
   */
  cachedTokens: number;
  cacheWriteTokens: number;
  /** Reasoning tokens of the answer. */
  reasoningTokens: number;
  /** Details that only some servers report. */
  details?: UsageDetails | undefined;
}

export interface UsageDetails {
  /** Tokens that were written to a cache for an hour. */
  cacheWriteHourTokens?: number | undefined;
  inputAudioTokens?: number | undefined;
  inputImageTokens?: number | undefined;
  outputAudioTokens?: number | undefined;
  outputImageTokens?: number | undefined;
  /** Searches that the model server ran. */
  searches?: number | undefined;
  /** Documents that were ranked or compared. `searchUnits` are the vendor's own count. */
  documents?: number | undefined;
  searchUnits?: number | undefined;
  /**
   * Characters of text that was converted to speech. `seconds`: whole seconds of transcribed audio. `images`: generated
   * images.
   */
  characters?: number | undefined;
  seconds?: number | undefined;
  images?: number | undefined;
  /** Bytes of a tool's arguments. `bytesOut`: bytes of its result. `toolErrors`: 1 if the tool reported an error. */
  bytesIn?: number | undefined;
  bytesOut?: number | undefined;
  toolErrors?: number | undefined;
  /** 1 if the answer came from the response cache. The tokens are those of the original answer. */
  replayed?: number | undefined;
  /** The tier, speed and region that the server reports for the request, in lower case. */
  served?: readonly string[] | undefined;
  /** The cost that the vendor reported, in nano-USD. */
  billedNanoUsd?: number | undefined;
}

/**
 * The counts of `UsageDetails`. For each, the name of the total that contains it, or null if it is a count of its own.
 */
export const detailCounts = {
  cacheWriteHourTokens: "cacheWriteTokens",
  inputAudioTokens: "promptTokens",
  inputImageTokens: "promptTokens",
  outputAudioTokens: "completionTokens",
  outputImageTokens: "completionTokens",
  searches: null,
  documents: null,
  searchUnits: null,
  characters: null,
  seconds: null,
  images: null,
  bytesIn: null,
  bytesOut: null,
  toolErrors: null,
  replayed: null,
} as const satisfies Partial<Record<keyof UsageDetails, string | null>>;

/** Usage details with a price of their own. */
export type UsageUnits = Pick<UsageDetails, "documents" | "searchUnits" | "characters" | "seconds" | "images">;

/** Returns the parts for an answer from the response cache, marked as `replayed`. */
export function replayedParts(parts: UsageParts | undefined): UsageParts {
  const { cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0, details } = parts ?? {};
  return { cachedTokens, cacheWriteTokens, reasoningTokens, details: { ...details, replayed: 1 } };
}

/** Limits each part to the total that contains it. */
export function partsWithin(
  { cachedTokens, cacheWriteTokens, reasoningTokens, details }: UsageParts,
  promptTokens: number,
  completionTokens: number,
): UsageParts {
  const cached = Math.min(cachedTokens, promptTokens);
  const written = Math.min(cacheWriteTokens, promptTokens - cached);
  return {
    cachedTokens: cached,
    cacheWriteTokens: written,
    reasoningTokens: Math.min(reasoningTokens, completionTokens),
    details: details && detailsWithin(details, { promptTokens, completionTokens, cacheWriteTokens: written }),
  };
}

/** Adds up the parts of several model calls. Returns undefined if `all` is empty. */
export function partsTogether(all: readonly UsageParts[]): UsageParts | undefined {
  const [first, ...others] = all;
  return first && others.reduce(bothParts, first);
}

function bothParts(one: UsageParts, other: UsageParts): UsageParts {
  const details: UsageDetails = { ...one.details, ...other.details };
  for (const name of [...(Object.keys(detailCounts) as (keyof typeof detailCounts)[]), "billedNanoUsd"] as const) {
    const [a, b] = [one.details?.[name], other.details?.[name]];
    if (a !== undefined && b !== undefined) details[name] = a + b;
  }
  return {
    cachedTokens: one.cachedTokens + other.cachedTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
    reasoningTokens: one.reasoningTokens + other.reasoningTokens,
    details: one.details || other.details ? details : undefined,
  };
}

type Wholes = Record<Exclude<(typeof detailCounts)[keyof typeof detailCounts], null>, number>;

function detailsWithin(details: UsageDetails, wholes: Wholes): UsageDetails {
  const within: UsageDetails = { ...details };
  for (const name of Object.keys(detailCounts) as (keyof typeof detailCounts)[]) {
    const whole = detailCounts[name];
    const count = details[name];
    if (whole !== null && count !== undefined) within[name] = Math.min(count, wholes[whole]);
  }
  return within;
}

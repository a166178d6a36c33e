// Parts of the tokens of a request that have rates of their own, as far as its model server told them.

/** Whole numbers; each is a part of the figure that it is named after, and none where it is 0. */
export interface UsageParts {
  /** Tokens of the prompt that were read from a cache, and written to one, those for an hour among them. */
  cachedTokens: number;
  cacheWriteTokens: number;
  /** Tokens of the answer that the model thought. */
  reasoningTokens: number;
  /** What few servers tell. */
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
  /** Documents that were ranked or compared, and the search units that its vendor counts for them. */
  documents?: number | undefined;
  searchUnits?: number | undefined;
  /** Characters that were spoken, whole seconds of sound that were listened to, and images that were made. */
  characters?: number | undefined;
  seconds?: number | undefined;
  images?: number | undefined;
  /** Bytes of what a tool was asked with and of its result, and 1 where it said of that that it had failed. */
  bytesIn?: number | undefined;
  bytesOut?: number | undefined;
  toolErrors?: number | undefined;
  /** 1 where the gateway gave an answer again that it had kept: the tokens are those of when it was made. */
  replayed?: number | undefined;
  /** The tier, speed and region in which it says that it served, in lower case. */
  served?: readonly string[] | undefined;
  /** What the vendor says that it charges: nano-USD. */
  billedNanoUsd?: number | undefined;
}

/** Names of the counts of `UsageDetails`, with the figure that they are within; null: they are counts of their own. */
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

/** Those that have a price of their own, each. */
export type UsageUnits = Pick<UsageDetails, "documents" | "searchUnits" | "characters" | "seconds" | "images">;

/** The parts of an answer that is given again. */
export function replayedParts(parts: UsageParts | undefined): UsageParts {
  const { cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0, details } = parts ?? {};
  return { cachedTokens, cacheWriteTokens, reasoningTokens, details: { ...details, replayed: 1 } };
}

/** The parts as far as they can be true of the whole: what is more than that is no more than that. */
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

/** Those of several readings and writings as one; undefined where nothing of them was told. */
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

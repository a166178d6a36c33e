// The price of a model: rates by kind of usage, and variants for a time, a long prompt or a tier.

interface RateRow {
  /** The name in the code. */
  readonly name: string;
  /** The rate's name in the API and in headrace.yaml. */
  readonly wire: string;
  /** `tokens`: the rate is USD for a million tokens. `each`: the rate is USD for one unit. */
  readonly per: "tokens" | "each";
  /** The rate to use if this rate is missing. Null means no charge. */
  readonly else: string | null;
  /** Describes what the rate charges, in words for a sentence. */
  readonly of: string;
}

/** All rates, in the order in which they are shown. Each rate comes after the rate that is its default. */
export const rates = [
  { name: "input", wire: "input", per: "tokens", else: null, of: "the prompt" },
  {
    name: "cachedInput",
    wire: "cached_input",
    per: "tokens",
    else: "input",
    of: "the prompt that were read from a cache",
  },
  {
    name: "cacheWrite",
    wire: "cache_write",
    per: "tokens",
    else: "input",
    of: "the prompt that were written to a cache",
  },
  {
    name: "cacheWriteHour",
    wire: "cache_write_1h",
    per: "tokens",
    else: "cacheWrite",
    of: "the prompt that were written to a cache for an hour",
  },
  { name: "inputAudio", wire: "input_audio", per: "tokens", else: "input", of: "audio in the prompt" },
  { name: "inputImage", wire: "input_image", per: "tokens", else: "input", of: "images in the prompt" },
  { name: "output", wire: "output", per: "tokens", else: null, of: "the answer" },
  { name: "reasoning", wire: "reasoning", per: "tokens", else: "output", of: "the reasoning" },
  { name: "outputAudio", wire: "output_audio", per: "tokens", else: "output", of: "audio in the answer" },
  { name: "outputImage", wire: "output_image", per: "tokens", else: "output", of: "images in the answer" },
  { name: "request", wire: "request", per: "each", else: null, of: "a request" },
  { name: "search", wire: "search", per: "each", else: null, of: "a search that the model server ran" },
  { name: "document", wire: "document", per: "each", else: null, of: "a document that is ranked or compared" },
  { name: "searchUnit", wire: "search_unit", per: "each", else: null, of: "a query over up to 100 documents" },
  { name: "character", wire: "character", per: "each", else: null, of: "a character that is spoken" },
  { name: "second", wire: "second", per: "each", else: null, of: "a second of audio that is transcribed" },
  { name: "image", wire: "image", per: "each", else: null, of: "an image that is made" },
] as const satisfies readonly RateRow[];

export type Rate = (typeof rates)[number];
export type RateName = Rate["name"];

/** Rates in USD: for a million tokens, or for one unit. If a rate is missing, `rates` says what applies. */
export type Rates = Partial<Record<RateName, number>>;

/** Rates that replace the price's usual rates if every condition of the variant applies. */
export interface PriceVariant extends Rates {
  /**
   * Condition: the prompt has more tokens than this, cached tokens included. The rates then apply to all its tokens.
   */
  contextAbove?: number;
  /** Condition: the model server reports this tier, speed or region, such as `flex`, `fast` or `us`. */
  served?: string;
  /** Condition: the request began at this time or later, in Unix seconds. */
  from?: number;
  /**
   * Condition: the request began in one of these parts of the day (UTC), in minutes from midnight. `start` is included,
   * `end` is not. If `end` is not after `start`, the part continues over midnight and belongs to the day on which it
   * began.
   */
  hours?: readonly { start: number; end: number }[];
  /** Condition: the request began on one of these days of the week (UTC). 0 is Sunday. */
  days?: readonly number[];
  /** Factor for all token rates, including rates of this variant. */
  factor?: number;
}

/** The price of a model. `input` and `output` are required, so that a price of 0 is a decision. */
export interface Price extends Rates {
  input: number;
  output: number;
  /** Later variants override earlier ones; their factors multiply. */
  variants?: readonly PriceVariant[];
}

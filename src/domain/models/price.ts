// The price of a model: rates by kind of usage, and variants for a time, a long prompt or a tier.

interface RateRow {
  /** The name in the code. */
  readonly name: string;
  /** The name on the wire and in headrace.yaml. */
  readonly wire: string;
  /** `tokens`: USD for a million of them; `each`: USD for one. */
  readonly per: "tokens" | "each";
  /** The rate that applies if this rate is missing; null: nothing is charged. */
  readonly else: string | null;
  /** The usage that the rate charges, worded as part of a sentence. */
  readonly of: string;
}

/** The rates in the order in which they are shown. A rate follows the rate that is its default. */
export const rates = [
  { name: "input", wire: "input", per: "tokens", else: null, of: "the prompt" },
  { name: "cachedInput", wire: "cached_input", per: "tokens", else: "input", of: "what of it was read from a cache" },
  { name: "cacheWrite", wire: "cache_write", per: "tokens", else: "input", of: "what of it was written to a cache" },
  {
    name: "cacheWriteHour",
    wire: "cache_write_1h",
    per: "tokens",
    else: "cacheWrite",
    of: "what of it was written to a cache for an hour",
  },
  { name: "inputAudio", wire: "input_audio", per: "tokens", else: "input", of: "audio in the prompt" },
  { name: "inputImage", wire: "input_image", per: "tokens", else: "input", of: "images in the prompt" },
  { name: "output", wire: "output", per: "tokens", else: null, of: "the answer" },
  { name: "reasoning", wire: "reasoning", per: "tokens", else: "output", of: "what the model thought" },
  { name: "outputAudio", wire: "output_audio", per: "tokens", else: "output", of: "audio in the answer" },
  { name: "outputImage", wire: "output_image", per: "tokens", else: "output", of: "images in the answer" },
  { name: "request", wire: "request", per: "each", else: null, of: "a request" },
  { name: "search", wire: "search", per: "each", else: null, of: "a search that the model server ran" },
  { name: "document", wire: "document", per: "each", else: null, of: "a document that is ranked or compared" },
  { name: "searchUnit", wire: "search_unit", per: "each", else: null, of: "a query over up to 100 documents" },
  { name: "character", wire: "character", per: "each", else: null, of: "a character that is spoken" },
  { name: "second", wire: "second", per: "each", else: null, of: "a second of sound that is listened to" },
  { name: "image", wire: "image", per: "each", else: null, of: "an image that is made" },
] as const satisfies readonly RateRow[];

export type Rate = (typeof rates)[number];
export type RateName = Rate["name"];

/** USD per million tokens, or each. Defaults of missing rates are in `rates`. */
export type Rates = Partial<Record<RateName, number>>;

/** Rates that replace the price's usual rates if every condition of the variant applies. */
export interface PriceVariant extends Rates {
  /** The prompt has more tokens than this, including cached ones; the rates then apply to all its tokens. */
  contextAbove?: number;
  /** The model server reported that it served in this tier, speed or region, such as `flex`, `fast` or `us`. */
  served?: string;
  /** The request began at this time or later: Unix seconds. */
  from?: number;
  /**
   * The request began in one of these parts of a day (UTC), in minutes from midnight: from `start`, before `end`. A
   * part whose end is not after its start continues over midnight, and belongs to the day on which it began.
   */
  hours?: readonly { start: number; end: number }[];
  /** The request began on one of these days of the week (UTC), 0 for Sunday. */
  days?: readonly number[];
  /** Factor for all token rates, including those of the variant. */
  factor?: number;
}

/** `input` and `output` are required, so that a price of 0 is deliberate. */
export interface Price extends Rates {
  input: number;
  output: number;
  /** Later variants override earlier ones; their factors multiply. */
  variants?: readonly PriceVariant[];
}

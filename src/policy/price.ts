// What tokens cost.
import type { Price } from "../domain/models/model.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";

/** A price in USD per million tokens is one of 1,000 nano-USD per token. */
const nanoUsdPerPriceUnit = 1_000;

/** Whole nano-USD (10^-9); null where the model has no price. */
export function nanoUsdOf(
  { promptTokens, completionTokens }: Pick<TokenUsage, "promptTokens" | "completionTokens">,
  price: Price | undefined,
): number | null {
  if (!price) return null;
  const nanoUsd = Math.round((promptTokens * price.input + completionTokens * price.output) * nanoUsdPerPriceUnit);
  // The cost of a price that is a mistake: PostgreSQL refuses a larger one, and with it all usage that is written together.
  return Math.min(nanoUsd, Number.MAX_SAFE_INTEGER);
}

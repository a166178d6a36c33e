// What tokens cost.
import type { Price } from "../domain/model.ts";
import type { TokenUsage } from "../domain/usage.ts";

/** A price in USD per million tokens is one of 1,000 nano-USD per token. */
const nanoUsdPerPriceUnit = 1_000;

/** Whole nano-USD (10^-9); null where the model has no price. */
export function nanoUsdOf(
  { promptTokens, completionTokens }: Pick<TokenUsage, "promptTokens" | "completionTokens">,
  price: Price | undefined,
): number | null {
  if (!price) return null;
  return Math.round((promptTokens * price.input + completionTokens * price.output) * nanoUsdPerPriceUnit);
}

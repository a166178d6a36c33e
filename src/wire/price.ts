// Schemas of the prices of models in the API's requests and answers.
import { z } from "zod";
import { rates } from "../domain/models/price.ts";
import {
  dayNames,
  fromPattern,
  hoursPattern,
  largestFactor,
  largestRate,
  maxHours,
  maxVariants,
  type RateWire,
  rateDoc,
  servedPattern,
  variantDocs,
} from "../domain/models/price-text.ts";

const rate = z.number().min(0).max(largestRate);
const optionalRates = Object.fromEntries(
  rates.map((one) => [one.wire, rate.exactOptional().describe(rateDoc(one))]),
) as Record<RateWire, z.ZodExactOptional<typeof rate>>;

const conditions = {
  context_above: z.int().min(1).max(1e9).exactOptional().describe(variantDocs.context_above),
  served: z.string().regex(servedPattern).exactOptional().describe(variantDocs.served),
  from: z.string().regex(fromPattern).exactOptional().describe(variantDocs.from),
  hours: z.array(z.string().regex(hoursPattern)).min(1).max(maxHours).exactOptional().describe(variantDocs.hours),
  days: z.array(z.enum(dayNames)).min(1).max(dayNames.length).exactOptional().describe(variantDocs.days),
  factor: z.number().min(0).max(largestFactor).exactOptional().describe(variantDocs.factor),
};

const variantMembers = { ...conditions, ...optionalRates };
const members = {
  ...optionalRates,
  input: rate.describe(rateDoc(rates[0])),
  output: rate.describe("USD per million tokens of the answer."),
};

/**
 * The schema of a price in an answer. Later versions may add members to an answer, but a request with unknown members
 * is refused.
 */
export const priceShape = z.object({
  ...members,
  variants: z.array(z.object(variantMembers)).exactOptional().describe(variantDocs.variants),
});
export const priceRequest = z.strictObject({
  ...members,
  variants: z.array(z.strictObject(variantMembers)).max(maxVariants).exactOptional().describe(variantDocs.variants),
});

// The key `price` of a model in headrace.yaml.
import * as z from "zod";
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
import { entry, field, list, mapping } from "./field.ts";

const rate = (doc: string) =>
  field(z.number().min(0).max(largestRate), {
    doc,
    must: `a number of USD, from 0 to ${largestRate}`,
    fix: "Give a plain number such as 0.15.",
  });

function optionalRates(): Record<RateWire, z.ZodExactOptional<z.ZodNumber>> {
  const fields = rates.map((one) => [one.wire, rate(rateDoc(one)).exactOptional()]);
  return Object.fromEntries(fields) as Record<RateWire, z.ZodExactOptional<z.ZodNumber>>;
}

const variant = field(
  z.strictObject({
    context_above: field(z.int().min(1).max(1e9), {
      doc: variantDocs.context_above,
      must: "a whole number of tokens, 1 or more",
      fix: "Give a number such as 200000, or leave it out.",
    }).exactOptional(),
    served: field(z.string().regex(servedPattern), {
      doc: variantDocs.served,
      must: "1 to 24 lower-case letters, digits, dots, underscores or hyphens",
      fix: "Give a name such as flex, or leave it out.",
    }).exactOptional(),
    from: field(z.string().regex(fromPattern), {
      doc: variantDocs.from,
      must: "a day or a time (UTC)",
      fix: "Give one such as 2026-12-01 or 2026-12-01T08:00:00Z, or leave it out.",
    }).exactOptional(),
    hours: field(
      z
        .array(
          field(z.string().regex(hoursPattern), {
            doc: "A part of a day (UTC).",
            must: "two times of a day",
            fix: 'Give them as "01:00-04:00".',
          }),
        )
        .min(1)
        .max(maxHours),
      list(variantDocs.hours, `1 to ${maxHours} parts of a day`),
    ).exactOptional(),
    days: field(
      z
        .array(
          field(z.enum(dayNames), {
            doc: "A day of the week.",
            must: dayNames.join(", "),
            fix: "Write the first three letters of a day.",
          }),
        )
        .min(1)
        .max(dayNames.length),
      list(variantDocs.days, "days of the week"),
    ).exactOptional(),
    factor: field(z.number().min(0).max(largestFactor), {
      doc: variantDocs.factor,
      must: `a number from 0 to ${largestFactor}`,
      fix: "Give a number such as 0.5, or leave it out.",
    }).exactOptional(),
    ...optionalRates(),
  }),
  entry("A variant.", "conditions and rates"),
);

export const price = field(
  z.strictObject({
    ...optionalRates(),
    input: rate(rateDoc(rates[0])),
    output: rate("USD per million tokens of the answer."),
    variants: field(
      z.array(variant).max(maxVariants),
      list(variantDocs.variants, `at most ${maxVariants} variants`),
    ).exactOptional(),
  }),
  mapping("Price of usage. Default: nothing is charged."),
);

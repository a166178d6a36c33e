// Schemas of amounts of limits in the API's requests and answers.
import { z } from "zod";
import { type Amount, amountSentence } from "../domain/limits/amounts.ts";

/** Returns the schema of a number within the bounds of the amount. */
export function boundedAmount({ unit, least, most }: Amount): z.ZodNumber {
  return unit === "USD" ? z.number().min(least).max(most) : z.int().min(least).max(most);
}

/** Returns the schema of an amount within its bounds, together with its description. */
export function givenAmount(amount: Amount): z.ZodNumber {
  return boundedAmount(amount).describe(`${amountSentence(amount)}.`);
}

/** Returns the schema of an amount in an answer. */
export function shownAmount({ unit }: Amount): z.ZodNullable<z.ZodNumber> {
  return z
    .number()
    .nullable()
    .describe(`${unit === "USD" ? "USD; " : ""}null: no limit.`);
}

// The JSON of answer speeds.
import { z } from "zod";
import { tokensPerSecond } from "../../../domain/usage/usage.ts";

const digits = 100;

export const firstTokenMs = z
  .number()
  .nullable()
  .describe(
    "Milliseconds from the request to the first chunk of its answer. null if the answer was not streamed or came in one chunk.",
  );

export const speed = z
  .number()
  .nullable()
  .describe("Tokens per second of generation, after the first token. null if too little was streamed.");

/** Rounds to two decimals, because measurements are not more precise. */
export function rounded(value: number): number {
  return Math.round(value * digits) / digits;
}

export function shownSpeed(tokens: number, ms: number): number | null {
  const value = tokensPerSecond(tokens, ms);
  return value === null ? null : rounded(value);
}

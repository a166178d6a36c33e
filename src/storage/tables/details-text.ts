// What few model servers tell of a request's usage, as text: in a column of its record, and on the spool.
import { z } from "zod";
import { detailCounts, type UsageDetails } from "../../domain/usage/usage-parts.ts";

/** Longest text; a longer one says what nobody could have meant, and is left out. */
const maxDetailsLength = 512;

const count = z.int().nonnegative();
const counts = Object.fromEntries(Object.keys(detailCounts).map((name) => [name, count.optional()])) as Record<
  keyof typeof detailCounts,
  z.ZodOptional<typeof count>
>;
export const detailsSchema: z.ZodType<UsageDetails> = z.object({
  ...counts,
  served: z.array(z.string()).optional(),
  billedNanoUsd: count.optional(),
});

/** Undefined where it says nothing. */
export function detailsText(details: UsageDetails | undefined): string | undefined {
  if (!details) return undefined;
  const text = JSON.stringify(details);
  return text === "{}" || text.length > maxDetailsLength ? undefined : text;
}

/** Undefined for what none of ours has written. */
export function readDetails(text: string): UsageDetails | undefined {
  try {
    return detailsSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

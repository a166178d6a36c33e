// Details of usage that only some model servers report, as text for a record's column and the spool.
import { z } from "zod";
import { detailCounts, type UsageDetails } from "../../domain/usage/usage-parts.ts";

/** Maximum length. A longer text is implausible and left out. */
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

/** Returns the details as text; undefined if they are empty or the text is too long. */
export function detailsText(details: UsageDetails | undefined): string | undefined {
  if (!details) return undefined;
  const text = JSON.stringify(details);
  return text === "{}" || text.length > maxDetailsLength ? undefined : text;
}

/** Parses details. Returns undefined for a text that Headrace did not write. */
export function readDetails(text: string): UsageDetails | undefined {
  try {
    return detailsSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

// Defines the JSON of lists, and the query parameters for paging.
import { z } from "zod";

const defaultLimit = 20;
const maxLimit = 100;

/** Query parameters of paged lists. Each endpoint adds them to its own parameters. */
export const pageQuery = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(maxLimit)
    .default(defaultLimit)
    .meta({ description: `a whole number from 1 to ${maxLimit}: the maximum number of entries` }),
  after: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: "the id of the last object of the previous page, to get the next page" }),
};

export interface ListPage<Item> {
  object: "list";
  data: Item[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}

/** Returns the schema of one page. `id` is its name in the OpenAPI document. */
export function listOf<Item extends z.ZodType>(item: Item, id: string) {
  return z
    .object({
      object: z.literal("list"),
      data: z.array(item),
      first_id: z
        .string()
        .nullable()
        .meta({ description: "Id of the first object of the page. null if the page is empty." }),
      last_id: z
        .string()
        .nullable()
        .meta({ description: "Id of the last object of the page. Send it as `after` to get the next page." }),
      has_more: z.boolean().meta({ description: "True if more objects follow." }),
    })
    .meta({ id });
}

/** Returns the schema of an unpaged list. `id` is its name in the OpenAPI document. */
export function wholeListOf<Item extends z.ZodType>(item: Item, id: string) {
  return z.object({ object: z.literal("list"), data: z.array(item) }).meta({ id });
}

/** Returns a page. The caller must read `limit + 1` items, because an extra item shows that there are more. */
export function pageOf<Item extends { id: string }>(found: readonly Item[], limit: number): ListPage<Item> {
  const data = found.slice(0, limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: found.length > limit,
  };
}

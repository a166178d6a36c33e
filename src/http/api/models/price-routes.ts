// The endpoint for vendors' list prices of public models, with search and paging.
import { z } from "zod";
import { invalidRequest } from "../../../base/errors.ts";
import { type ListedPrice, matchingPrices, priceList } from "../../../prices/price-list.ts";
import { priceShape } from "../../../wire/price.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import { type EndpointDeps, scopedEndpoints } from "../endpoint.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";

const listedPriceShape = z
  .object({
    object: z.literal("listed_price"),
    id: z.string().describe("`vendor/model`, the name for `price_of` of a model."),
    vendor: z.string(),
    model: z.string(),
    context_length: z
      .int()
      .nullable()
      .describe("Context length in tokens, prompt and answer together. null if the list does not have it."),
    price: priceShape,
  })
  .meta({ id: "ListedPrice" });

const page = listOf(listedPriceShape, "ListedPrices");
const listShape = z
  .object({
    ...page.shape,
    source: z.string().describe("Package of the price list, with its version."),
    date: z.string().describe("Date of the prices."),
    vendors: z.array(z.object({ id: z.string(), name: z.string(), models: z.int() })),
  })
  .meta({ id: "PriceList" });

const priceQuery = z.object({
  ...pageQuery,
  search: z
    .string()
    .max(200)
    .optional()
    .meta({ description: "parts of vendor and model, separated by spaces; the id contains all of them" }),
  vendor: z.string().min(1).max(100).optional().meta({ description: "the id of a vendor, to list only its models" }),
});

const endpoint = scopedEndpoints<EndpointDeps>("models:read", { tag: "Models" });

export function priceRoutes(deps: EndpointDeps): ScopedRoute[] {
  return [list(deps)];
}

const list = endpoint("GET", "/v1/prices", {
  operationId: "listPrices",
  summary: "List the prices of public models at their vendors",
  description:
    "The list ships with the program, without any network access. A model has such a price only if its operator sets `price_of`. Sorted by vendor and model.",
  query: priceQuery,
  response: { description: "One page of prices, with their source.", json: listShape },
  answer({ query: { search = "", vendor, limit, after } }) {
    const { source, date, vendors } = priceList();
    const words = search.split(/\s+/).filter((word) => word !== "");
    const found = matchingPrices(words).filter(({ name }) => vendor === undefined || vendorOf(name) === vendor);
    const index = after === undefined ? -1 : found.findIndex(({ name }) => name === after);
    if (after !== undefined && index < 0) {
      throw invalidRequest("after: must be an id of this list, such as the last one shown.");
    }
    const shown = found.slice(index + 1, index + 2 + limit).map(toWire);
    return { ...pageOf(shown, limit), source, date, vendors: vendors.map((one) => ({ ...one })) };
  },
});

function toWire({ name, context, price }: ListedPrice): z.infer<typeof listedPriceShape> {
  const vendor = vendorOf(name);
  return {
    object: "listed_price",
    id: name,
    vendor,
    model: name.slice(vendor.length + 1),
    context_length: context ?? null,
    price,
  };
}

/** Returns the vendor: the part before the first slash. The rest may contain more slashes. */
function vendorOf(name: string): string {
  return name.slice(0, name.indexOf("/"));
}

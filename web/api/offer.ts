// Loads the tools that a person may use at all MCP servers, once for all parts of a page.
import { useQuery } from "@tanstack/react-query";
import type { ApiFailure } from "./client.ts";
import { useSliced } from "./queries.ts";
import { type Offer, readOffer, toolsPath } from "./tools.ts";

/** Loads nothing while `enabled` is false. */
export function useOffer({ enabled = true } = {}) {
  return useSliced(
    useQuery<Offer, ApiFailure>({
      queryKey: [toolsPath],
      queryFn: ({ signal }) => readOffer(signal),
      staleTime: 30_000,
      enabled,
    }),
  );
}

// The operators' endpoint for answers that are kept to be given again.
import { z } from "zod";
import type { KeptAnswers } from "../../../inference/cache/kept-answers.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminCacheDeps extends EndpointDeps {
  keptAnswers: Pick<KeptAnswers, "forget">;
}

const which = z.object({
  account: z.string().min(1).max(100).optional().meta({ description: "Only those of this account, by its id." }),
  model: z.string().min(1).max(300).optional().meta({ description: "Only those of this model, by its id." }),
});

const cleared = z
  .object({
    object: z.literal("cache"),
    account: z.string().nullable().describe("null: of all accounts."),
    model: z.string().nullable().describe("null: of all models."),
    deleted: z.literal(true),
  })
  .meta({ id: "ClearedCache" });

const endpoint = adminEndpoints<AdminCacheDeps>();

export function adminCacheRoutes(deps: AdminCacheDeps): ScopedRoute[] {
  return [clear(deps)];
}

const clear = endpoint("DELETE", "/v1/admin/cache", {
  operationId: "clearCache",
  summary: "Forget answers that are kept to be given again",
  description:
    "All of them, those of an account or of a model, or of both. Requests that are under way keep no answer of before. Where answers are in the memory of several processes, the others forget all of theirs within a second or two.",
  response: { description: "They are forgotten.", json: cleared },
  query: which,
  errors: ["service_unavailable"],
  async answer({ deps, principal, query: { account, model }, origin }) {
    await deps.keptAnswers.forget(principal, { accountId: account, model }, origin);
    return { object: "cache", account: account ?? null, model: model ?? null, deleted: true };
  },
});

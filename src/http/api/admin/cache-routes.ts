// The operators' endpoint for the response cache.
import { z } from "zod";
import type { KeptAnswers } from "../../../inference/cache/kept-answers.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminCacheDeps extends EndpointDeps {
  keptAnswers: Pick<KeptAnswers, "forget">;
}

const which = z.object({
  account: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .meta({ description: "the id of an account, to clear only its answers" }),
  model: z.string().min(1).max(300).optional().meta({ description: "the id of a model, to clear only its answers" }),
});

const cleared = z
  .object({
    object: z.literal("cache"),
    account: z.string().nullable().describe("null: all accounts."),
    model: z.string().nullable().describe("null: all models."),
    deleted: z.literal(true),
  })
  .meta({ id: "ClearedCache" });

const endpoint = adminEndpoints<AdminCacheDeps>();

export function adminCacheRoutes(deps: AdminCacheDeps): ScopedRoute[] {
  return [clear(deps)];
}

const clear = endpoint("DELETE", "/v1/admin/cache", {
  operationId: "clearCache",
  summary: "Clear the response cache",
  description:
    "Clears all answers, or those of an account, a model, or both. Running requests add no answer from before. If several processes cache answers in memory, the others clear all their answers within two seconds.",
  response: { description: "The answers are deleted.", json: cleared },
  query: which,
  errors: ["service_unavailable"],
  async answer({ deps, principal, query: { account, model }, origin }) {
    await deps.keptAnswers.forget(principal, { accountId: account, model }, origin);
    return { object: "cache", account: account ?? null, model: model ?? null, deleted: true };
  },
});

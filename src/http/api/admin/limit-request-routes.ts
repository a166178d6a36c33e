// The operators' endpoints for requests that ask for more of an account's quotas.
import { grantLimitRequest, limitRequestShape } from "../../../wire/people/limit-requests.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import {
  decide,
  type LimitRequestDeps,
  limitRequestId,
  limitRequestList,
  limitRequestQuery,
  limitRequestsPage,
} from "../people/limit-request-routes.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

const endpoint = adminEndpoints<LimitRequestDeps>();

export function adminLimitRequestRoutes(deps: LimitRequestDeps): ScopedRoute[] {
  return [list(deps), grant(deps), refuse(deps)];
}

const list = endpoint("GET", "/v1/admin/limit-requests", {
  operationId: "listAllLimitRequests",
  summary: "List requests for more of the limits of accounts",
  description: "Requests about members' own quotas are left out: their owners and admins decide. Newest first.",
  query: limitRequestQuery,
  response: { description: "One page of requests.", json: limitRequestList },
  answer: ({ deps, query, origin }) => limitRequestsPage({ owner: "account" }, query, deps, origin.nowSeconds),
});

const grant = endpoint("POST", "/v1/admin/limit-requests/:id/grant", {
  operationId: "grantAnyLimitRequest",
  summary: "Raise a limit of an account or a member for a time",
  description: "The amount is added to the quota, on all replicas, and ends by itself.",
  parameters: limitRequestId,
  requestBody: grantLimitRequest,
  example: { amount: 50, seconds: 86_400 },
  response: { description: "The request.", json: limitRequestShape },
  answer: ({ deps, principal, id, body, origin }) => decide(deps, { principal, id, body, origin }, undefined),
});

const refuse = endpoint("POST", "/v1/admin/limit-requests/:id/refuse", {
  operationId: "refuseAnyLimitRequest",
  summary: "Refuse a request for more of a limit of any account, or end its raise early",
  parameters: limitRequestId,
  errors: ["invalid_request"],
  response: { description: "The request.", json: limitRequestShape },
  answer: ({ deps, principal, id, origin }) => decide(deps, { principal, id, origin }, undefined),
});

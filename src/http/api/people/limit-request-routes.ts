// The endpoints by which members ask for more of a quota, and owners and admins decide.
import { z } from "zod";
import type { LimitRequests } from "../../../accounts/limit-requests.ts";
import type { LimitRequestFilter } from "../../../domain/limits/limit-requests.ts";
import type { Throttle } from "../../../policy/throttle.ts";
import {
  grantLimitRequest,
  limitRequestShape,
  limitRequestToWire,
  openLimitRequest,
} from "../../../wire/people/limit-requests.ts";
import type { PersonRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { managingEndpoints, peopleEndpoints } from "./people-endpoint.ts";

export interface LimitRequestDeps extends EndpointDeps {
  limitRequests: Pick<LimitRequests, "store" | "ask" | "decide" | "find">;
  throttle: Pick<Throttle, "require">;
}

export const limitRequestId = [{ name: "id", in: "path", description: "Id of the limit request, `lrq_…`." }] as const;
export const limitRequestQuery = z.object({
  ...pageQuery,
  status: z.enum(["open", "granted", "refused"]).optional().meta({
    description: "one of open, granted, refused; only requests with this status; `granted` includes ended raises",
  }),
});
export const limitRequestList = listOf(limitRequestShape, "LimitRequestList");

const asking = peopleEndpoints<LimitRequestDeps>();
const deciding = managingEndpoints<LimitRequestDeps>();

export function limitRequestRoutes(deps: LimitRequestDeps): PersonRoute[] {
  return [list(deps), open(deps), grant(deps), refuse(deps)];
}

const list = asking("GET", "/v1/limit-requests", {
  operationId: "listLimitRequests",
  summary: "List requests for more of a limit",
  description: "Owners and admins see those of the account, members their own. Newest first, back to 90 days.",
  query: limitRequestQuery,
  response: { description: "One page of requests.", json: limitRequestList },
  answer({ deps, principal: { account, person }, query, origin }) {
    const personId = person.role === "member" ? person.id : undefined;
    return limitRequestsPage({ accountId: account.id, personId }, query, deps, origin.nowSeconds);
  },
});

/** Returns one page of the requests that match the filter. */
export async function limitRequestsPage(
  filter: LimitRequestFilter,
  { limit, after, status }: z.output<typeof limitRequestQuery>,
  { limitRequests }: Pick<LimitRequestDeps, "limitRequests">,
  nowSeconds: number,
): Promise<z.infer<typeof limitRequestList>> {
  const found = await limitRequests.store.list({ ...filter, status }, { after, limit: limit + 1 });
  return pageOf(
    found.map((request) => limitRequestToWire(request, nowSeconds)),
    limit,
  );
}

const open = asking("POST", "/v1/limit-requests", {
  operationId: "createLimitRequest",
  summary: "Ask for more of a limit",
  description:
    "Names a quota of the signed-in person as a member, or of the account if an owner or admin asks, as `GET /v1/limits` lists it. Owners and admins decide about members' quotas, operators about those of accounts; they get the notification `limit.requested`. A person has at most one open request for each quota.",
  errors: ["permission_denied"],
  requestBody: openLimitRequest,
  example: { unit: "usd", per: "day", amount: 5, reason: "Evaluation of the new model, until Friday" },
  response: { description: "The request.", json: limitRequestShape },
  async answer({ deps, principal, body, origin }) {
    await deps.throttle.require("change", principal);
    const { owner, amount, reason, ...quota } = body;
    const wanted = { owner: owner ?? "member", quota, amount: amount ?? null, reason } as const;
    return limitRequestToWire(await deps.limitRequests.ask(principal, wanted, origin), origin.nowSeconds);
  },
});

const grant = deciding("POST", "/v1/limit-requests/:id/grant", {
  operationId: "grantLimitRequest",
  summary: "Raise a limit for a time",
  description:
    "The amount is added to the quota, on all replicas, and ends by itself. For owners, and for admins if a member asked. The person who asked gets the notification `limit.decided`.",
  parameters: limitRequestId,
  errors: ["permission_denied"],
  requestBody: grantLimitRequest,
  example: { amount: 5, seconds: 86_400 },
  response: { description: "The request.", json: limitRequestShape },
  answer: ({ deps, principal, id, body, origin }) =>
    decide(deps, { principal, id, body, origin }, principal.account.id),
});

const refuse = deciding("POST", "/v1/limit-requests/:id/refuse", {
  operationId: "refuseLimitRequest",
  summary: "Refuse a request for more of a limit, or end its raise early",
  description: "For owners, and for admins if a member asked. The person who asked is notified.",
  parameters: limitRequestId,
  errors: ["invalid_request", "permission_denied"],
  response: { description: "The request.", json: limitRequestShape },
  answer: ({ deps, principal, id, origin }) => decide(deps, { principal, id, origin }, principal.account.id),
});

interface Deciding {
  principal: Parameters<LimitRequests["decide"]>[0];
  id: string;
  /** If undefined, the request for a higher quota is refused. */
  body?: z.output<typeof grantLimitRequest>;
  origin: Parameters<LimitRequests["decide"]>[3];
}

/** Grants or refuses a request of this account. If the account is undefined, the request may belong to any account. */
export async function decide(
  { limitRequests, throttle }: LimitRequestDeps,
  { principal, id, body, origin }: Deciding,
  accountId: string | undefined,
): Promise<z.infer<typeof limitRequestShape>> {
  await throttle.require("change", principal);
  const request = await limitRequests.find(id, accountId);
  return limitRequestToWire(await limitRequests.decide(principal, request, body, origin), origin.nowSeconds);
}

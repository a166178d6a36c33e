// The endpoints for single requests, including refused ones: caller, model, outcome, cost and duration. Their
// content is not included.

import { z } from "zod";
import { GatewayError } from "../../../base/errors.ts";
import { modelOperation } from "../../../domain/models/operation.ts";
import type { ChatStore, ChatWriter } from "../../../domain/models/stored-chat.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { SaidInCall, ToolContentStore } from "../../../domain/tools/tool-content.ts";
import type { Ledger } from "../../../domain/usage/usage.ts";
import { isOperator } from "../../../policy/manage/operator.ts";
import type { RefusedRequests } from "../../../policy/records/refused-requests.ts";
import type { HistoryFilter, PastRequest, RequestHistory } from "../../../policy/records/request-history.ts";
import type { Retention } from "../../../policy/records/retention.ts";
import { dialects } from "../../../requests/dialects/dialects.ts";
import { unixSeconds } from "../../../wire/parts.ts";
import { chatIdOf } from "../../../wire/stored-chats.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { chatOwnerOf } from "../chat-routes.ts";
import { type EndpointDeps, scopedEndpoints } from "../endpoint.ts";
import { listInTurn } from "../list-turns.ts";
import { decodePosition, encodePosition, requestFilter, requestParameters } from "./request-query.ts";
import { detailsToWire, isRefused, oneRequest, requestShape, toWire, trailToWire } from "./request-wire.ts";
import { usageOwnerOf } from "./usage-owner.ts";
import { writtenSoon } from "./written-soon.ts";

export interface RequestRouteDeps extends EndpointDeps {
  requestHistory: Pick<RequestHistory, "list" | "find">;
  ledger: Pick<Ledger, "flush">;
  refusedRequests: Pick<RefusedRequests, "flush">;
  chats: Pick<ChatStore, "has">;
  chatWriter: Pick<ChatWriter, "flush">;
  toolContents: Pick<ToolContentStore, "find">;
  toolContentWriter: { flush(): Promise<void> };
  /** Knows since when requests are stored. */
  retention?: Pick<Retention, "keptSince">;
}

export const requestListShape = z.object({
  object: z.literal("list"),
  data: z.array(requestShape),
  next: z
    .string()
    .nullable()
    .describe("Send it as `cursor` to get the next page. null on the last page. Earlier pages may be empty."),
  searched_to: unixSeconds
    .nullable()
    .describe("Unix seconds. Requests that began later than this have all been read. null on the last page."),
  kept_since: unixSeconds
    .optional()
    .describe("Start of the stored requests in Unix seconds, if the requested time begins earlier."),
});
const requestList = requestListShape.meta({ id: "RequestList" });

const endpoint = scopedEndpoints<RequestRouteDeps>("usage:read", { tag: "Usage" });

export function requestRoutes(deps: RequestRouteDeps): ScopedRoute[] {
  return [list(deps), retrieve(deps)];
}

const list = endpoint("GET", "/v1/requests", {
  operationId: "listRequests",
  summary: "List requests",
  description:
    "Lists ended and refused requests of the account in the credential's environment, newest first. A member sees only their own unless an owner allowed more, and an app sees its own. If very many requests are refused, not all are stored. A page reads a limited number of requests: if few of them match, it has fewer entries than `limit`, or none, and `next` continues.",
  query: requestParameters,
  response: { description: "One page.", json: requestList },
  async answer({ deps, exchange, principal, query }) {
    const filter = requestFilter(query, principal);
    const { requests, ...page } = await requestPage(filter, query, { exchange, principal, deps });
    return { ...page, data: requests.map(toWire) };
  },
});

const retrieve = endpoint("GET", "/v1/requests/:id", {
  operationId: "retrieveRequest",
  summary: "Retrieve one request",
  description:
    "Includes the trail of attempts: the tried model servers and their results. Operators and keys with `admin:manage` see the names and errors of the servers. Others see numbers.",
  parameters: [{ name: "id", in: "path", description: "Id of the request, the `x-request-id` of its answer." }],
  response: { description: "The request.", json: oneRequest },
  async answer({ deps, principal, id }) {
    await allWrittenSoon(deps);
    const request = await deps.requestHistory.find(usageOwnerOf(principal), id);
    if (!request) {
      throw new GatewayError(
        "not_found",
        "There is no such request that you may see in this account and environment, or it has not ended yet; `GET /v1/requests` lists those that have.",
      );
    }
    const forOperator = isOperator(principal);
    const trail = trailToWire(request, forOperator);
    const details = detailsToWire(request, forOperator);
    const [chat, said] = [await chatOf(request, principal, deps), await saidIn(request, principal, deps)];
    return { ...toWire(request), usage_details: details, trail, chat, tool_content: said };
  },
});

type PageDeps = Pick<RequestRouteDeps, "requestHistory" | "ledger" | "refusedRequests" | "retention">;

/** Reads a page of the list. If `filter` is undefined, the list is empty. */
export async function requestPage(
  filter: HistoryFilter | undefined,
  query: Pick<z.output<typeof requestParameters>, "cursor" | "limit">,
  { exchange, principal, deps }: { exchange: Exchange; principal: Principal; deps: PageDeps },
): Promise<Omit<z.infer<typeof requestListShape>, "data"> & { requests: PastRequest[] }> {
  const after = query.cursor === undefined ? undefined : decodePosition(query.cursor);
  if (!filter) return { object: "list", requests: [], next: null, searched_to: null };
  await allWrittenSoon(deps);
  const keptSince = deps.retention?.keptSince("requests") ?? null;
  const isCut = keptSince !== null && filter.start < keptSince;
  // Skips the period whose requests are deleted. The hourly sums of that period still exist, so it would be searched
  // hour by hour.
  const start = isCut ? Math.min(keptSince, filter.end) : filter.start;
  const { requests, next } = await listInTurn(exchange, principal, () =>
    deps.requestHistory.list({ ...filter, start }, { after, limit: query.limit }),
  );
  return {
    object: "list",
    requests,
    next: next && encodePosition(next),
    searched_to: next?.at ?? null,
    ...(isCut ? { kept_since: keptSince } : {}),
  };
}

export async function allWrittenSoon({
  ledger,
  refusedRequests,
}: Pick<PageDeps, "ledger" | "refusedRequests">): Promise<void> {
  await Promise.all([writtenSoon(ledger), writtenSoon(refusedRequests)]);
}

/**
 * Returns the id of the stored chat if the caller may read it. A member sees only their own chats, and a usage
 * key none.
 */
async function chatOf(request: PastRequest, principal: Principal, deps: RequestRouteDeps): Promise<string | null> {
  const { operation } = request;
  const asked = modelOperation(operation);
  const kept = asked && dialects[asked].kept;
  const isStored = kept?.as === "chat" && !isRefused(request) && request.outcome === "completed";
  if (!principal.scopes.has("chat:read") || !isStored) return null;
  const id = chatIdOf(request.requestId);
  await writtenSoon(deps.chatWriter);
  return (await deps.chats.has(chatOwnerOf(principal), id, deps.clock.nowSeconds())) ? id : null;
}

/** Returns the stored content of a tool call, if the caller may read stored chats. */
async function saidIn(
  request: PastRequest,
  principal: Principal,
  { toolContents, toolContentWriter, clock }: RequestRouteDeps,
): Promise<SaidInCall | null> {
  const isCall = modelOperation(request.operation) === undefined && !isRefused(request);
  if (!isCall || !principal.scopes.has("chat:read")) return null;
  await writtenSoon(toolContentWriter);
  return (await toolContents.find(chatOwnerOf(principal), request.requestId, clock.nowSeconds())) ?? null;
}

// Single requests as the ledger has them: who, what, how it ended, what it cost and how long it took; never their content.

import { z } from "zod";
import { chatIdOf } from "../domain/chat-list.ts";
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import type { RequestLog } from "../domain/request-log.ts";
import type { ChatStore, ChatWriter } from "../domain/stored-chat.ts";
import { generationOf, type Ledger, type UsageRecord, usageOutcomes } from "../domain/usage.ts";
import { unixSeconds } from "../domain/wire.ts";
import type { Retention } from "../policy/retention.ts";
import { chatOwnerOf } from "./chat-routes.ts";
import { readQuery } from "./query.ts";
import { decodePosition, encodePosition, requestFilter, requestParameters } from "./request-query.ts";
import type { Exchange, ScopedRoute } from "./route.ts";
import { firstTokenMs, shownSpeed, speed } from "./speed-wire.ts";
import { writtenSoon } from "./written-soon.ts";

export interface RequestRouteDeps {
  requestLog: RequestLog;
  ledger: Pick<Ledger, "flush">;
  chats: Pick<ChatStore, "has">;
  chatWriter: Pick<ChatWriter, "flush">;
  clock: Clock;
  /** Of what older requests were deleted. */
  retention?: Pick<Retention, "keptSince">;
}

const milliseconds = z.int().describe("Milliseconds.");

const requestShape = z
  .object({
    object: z.literal("request"),
    id: z.string().describe("The `x-request-id` of its answer."),
    at: unixSeconds.describe("When it began, Unix seconds."),
    operation: z.enum(["chat", "completion", "embedding"]),
    model: z.string(),
    key: z
      .string()
      .describe(
        "Id of the credential: of a key, of a signed-in member (`mbr_…`), of what an app was allowed (`grt_…`).",
      ),
    app: z.string().nullable().describe("Id of the OAuth app; null for none."),
    stream: z.boolean(),
    outcome: z
      .enum(usageOutcomes)
      .describe("cancelled: its client left; interrupted: the server's process ended before it did."),
    error_code: z.string().nullable().describe("`code` of the error that ended it."),
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
    estimated: z.boolean().describe("The tokens are an estimate: the model server did not tell."),
    capped: z.boolean().describe("The model server told of more tokens than can have been; these are the most."),
    cost: z.number().nullable().describe("USD; null where the model has no price."),
    upstream: z.string().nullable().describe("Who answered; null where nobody did."),
    queue_ms: milliseconds.describe("Milliseconds of waiting for a place, before it was sent."),
    first_token_ms: firstTokenMs,
    duration_ms: milliseconds.describe("Milliseconds until its end, all of them."),
    tokens_per_second: speed,
  })
  .meta({ id: "Request" });

const requestList = z
  .object({
    object: z.literal("list"),
    data: z.array(requestShape),
    next: z
      .string()
      .nullable()
      .describe("Give it as `cursor` to get the next page; null on the last one. A page may be empty before that."),
    searched_to: unixSeconds
      .nullable()
      .describe("All that began later than this, Unix seconds, was looked through; null on the last page."),
    kept_since: unixSeconds
      .optional()
      .describe(
        "Where a part of the time that was asked for is before it: requests from then on are kept, Unix seconds.",
      ),
  })
  .meta({ id: "RequestList" });

const oneRequest = requestShape
  .extend({
    chat: z
      .string()
      .nullable()
      .describe("Id of the stored chat completion that it made; null where none is kept, or for who may not read it."),
  })
  .meta({ id: "RequestDetail" });

export function requestRoutes(deps: RequestRouteDeps): ScopedRoute[] {
  return [
    {
      method: "GET",
      path: "/v1/requests",
      access: "usage:read",
      doc: {
        tag: "Usage",
        operationId: "listRequests",
        summary: "List requests",
        description:
          "Those of the account in the credential's environment that have ended, newest first; an app sees its own alone. How much is looked through for one page is bounded: where little of it is what was asked for, a page holds fewer than `limit`, or none, and `next` leads on.",
        query: requestParameters,
        response: { description: "One page.", json: requestList },
        errors: ["invalid_request", "service_unavailable"],
      },
      handle: (exchange, principal) => list(exchange, principal, deps),
    },
    {
      method: "GET",
      path: "/v1/requests/:id",
      access: "usage:read",
      doc: {
        tag: "Usage",
        operationId: "retrieveRequest",
        summary: "Retrieve one request",
        parameters: [{ name: "id", in: "path", description: "Id of the request, the `x-request-id` of its answer." }],
        response: { description: "The request.", json: oneRequest },
        errors: ["not_found", "service_unavailable"],
      },
      handle: (exchange, principal) => retrieve(exchange, principal, deps),
    },
  ];
}

async function list({ req }: Exchange, principal: Principal, deps: RequestRouteDeps): Promise<Response> {
  const asked = readQuery(requestParameters, req.target);
  const filter = requestFilter(asked, principal);
  const after = asked.cursor === undefined ? undefined : decodePosition(asked.cursor);
  if (!filter) return Response.json({ object: "list", data: [], next: null, searched_to: null });
  await writtenSoon(deps.ledger);
  const keptSince = deps.retention?.keptSince("requests") ?? null;
  const isCut = keptSince !== null && filter.start < keptSince;
  // What was deleted is not looked for, hour by hour, through all the sums that are still there.
  const start = isCut ? Math.min(keptSince, filter.end) : filter.start;
  const { records, next } = await deps.requestLog.list({ ...filter, start }, { after, limit: asked.limit });
  const answer: z.infer<typeof requestList> = {
    object: "list",
    data: records.map(toWire),
    next: next && encodePosition(next),
    searched_to: next?.at ?? null,
    ...(isCut ? { kept_since: keptSince } : {}),
  };
  return Response.json(answer);
}

async function retrieve(exchange: Exchange, principal: Principal, deps: RequestRouteDeps): Promise<Response> {
  const id = exchange.params["id"] ?? "";
  const { account, environment, appId } = principal;
  await writtenSoon(deps.ledger);
  const owner = { accountId: account.id, environment, ...(appId === null ? {} : { appId }) };
  const record = await deps.requestLog.find(owner, id);
  if (!record) {
    throw new GatewayError(
      "not_found",
      "There is no such request in this account and environment, or it has not ended yet; `GET /v1/requests` lists those that have.",
    );
  }
  return Response.json({ ...toWire(record), chat: await chatOf(record, principal, deps) });
}

/** Only one that the caller could read as well: a member sees no chat of another, a key for usage alone none at all. */
async function chatOf(record: UsageRecord, principal: Principal, deps: RequestRouteDeps): Promise<string | null> {
  if (!principal.scopes.has("chat:read") || record.operation !== "chat" || record.outcome !== "completed") return null;
  const id = chatIdOf(record.requestId);
  await writtenSoon(deps.chatWriter);
  return (await deps.chats.has(chatOwnerOf(principal), id, deps.clock.nowSeconds())) ? id : null;
}

function toWire(record: UsageRecord): z.infer<typeof requestShape> {
  const generation = generationOf(record);
  return {
    object: "request",
    id: record.requestId,
    at: record.at,
    operation: record.operation,
    model: record.model,
    key: record.keyId,
    app: record.appId,
    stream: record.stream,
    outcome: record.outcome,
    error_code: record.errorCode,
    prompt_tokens: record.promptTokens,
    completion_tokens: record.completionTokens,
    total_tokens: record.promptTokens + record.completionTokens,
    estimated: record.estimated,
    capped: record.capped,
    // A whole number: the nearest double of the quotient prints as the exact decimal.
    cost: record.nanoUsd === null ? null : record.nanoUsd / 1e9,
    upstream: record.upstream,
    queue_ms: record.queueMs,
    first_token_ms: record.firstTokenMs,
    duration_ms: record.durationMs,
    tokens_per_second: generation && shownSpeed(generation.tokens, generation.ms),
  };
}

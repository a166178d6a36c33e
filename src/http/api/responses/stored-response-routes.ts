// OpenAI's endpoints for stored responses: read, list input items, cancel and delete.
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import { fieldError, GatewayError } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import type { MayRead, ResponseStore, StoredItem, StoredResponse } from "../../../domain/models/stored-response.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { RequestLimits } from "../../../requests/decode/decode-request.ts";
import { objectsOf } from "../../../requests/dialects/response/json.ts";
import { deletedResponse, responseEvent, responseItem, responseObject } from "../../../wire/responses.ts";
import { readQuery } from "../../content/query.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { answerInTurn, inTurn } from "../content-reads.ts";
import { keptRoutes } from "../kept-routes.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { responseOwnerOf } from "../response-owner.ts";
import { cancelStored, type EventStreamDeps, streamStored } from "./background-answer.ts";

const route = keptRoutes({ base: "/v1/responses/:id", tag: "Stored responses", noun: "response" });

export interface StoredResponseRouteDeps extends EventStreamDeps {
  responses: Pick<ResponseStore, "find" | "chain" | "delete">;
  clock: Clock;
  /** Returns the limits of a request. Called for every request, because a reload may change them. */
  requestLimits(): RequestLimits;
}

const asked = z.string().max(128).optional();
/** The parameter is accepted but has no effect, because a stored response is returned exactly as it was sent. */
const include = asked.meta({ description: "accepted, without effect: a response is returned as it was answered" });
const responseQuery = z.object({
  include,
  include_obfuscation: asked.meta({ description: "accepted, without effect" }),
  stream: z.stringbool().optional().meta({
    description: "true or false; true: stream the events of a background response, until 10 minutes after its end",
  }),
  starting_after: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional().meta({
    description: "with `stream=true`: the `sequence_number` of an event, 0 or higher; only later events are sent",
  }),
});
const order = z
  .enum(["asc", "desc"])
  .default("desc")
  .meta({ description: "asc (oldest first) or desc (newest first)" });
const itemQuery = z.object({ ...pageQuery, order, include });
const itemList = listOf(responseItem, "ResponseItemList");

export function storedResponseRoutes(deps: StoredResponseRouteDeps): ScopedRoute[] {
  const { responses, clock } = deps;
  return [
    route(
      "GET",
      "",
      {
        operationId: "retrieveResponse",
        summary: "Retrieve a stored response",
        description:
          "Returns the response as it was answered, or the current state of a background response. Responses are stored until they expire or are deleted, unless the request had `store: false`. With `stream=true` the events of a background response are sent until its end, from the first event, or from the one after `starting_after`.",
        query: responseQuery,
        response: { description: "The response, or its events.", json: responseObject, stream: responseEvent },
        errors: ["not_found"],
      },
      inTurn(async (exchange, principal) => {
        const { stream, starting_after: after } = readQuery(responseQuery, exchange.req.target, "include");
        const found = await find(exchange, principal, deps);
        if (stream) return streamStored(exchange, principal, found, after, deps);
        if (after !== undefined)
          throw fieldError("starting_after", "is for `stream=true`: send that too, or leave it out.");
        return Response.json(found.response);
      }),
    ),
    cancelRoute(deps),
    route(
      "DELETE",
      "",
      {
        operationId: "deleteResponse",
        summary: "Delete a stored response",
        description:
          "The content is deleted immediately. Responses that continue it cannot be continued any more. Items that it added to a conversation stay there.",
        response: { description: "The response is deleted.", json: deletedResponse },
        errors: ["not_found"],
      },
      async (exchange, principal) => {
        const id = idOf(exchange);
        if (!(await responses.delete(responseOwnerOf(principal), id, clock.nowSeconds()))) throw notFound(id);
        deps.backgroundRuns.find(id)?.drop();
        return Response.json({ id, object: "response", deleted: true });
      },
    ),
    route(
      "GET",
      "/input_items",
      {
        operationId: "listResponseInputItems",
        summary: "List the input items of a response",
        description:
          "Lists the items of its own request, preceded by the conversation that it continued, as far as that is still stored.",
        query: itemQuery,
        response: { description: "One page.", json: itemList },
        errors: ["not_found"],
      },
      inTurn((exchange, principal) => listItems(exchange, principal, deps)),
    ),
  ];
}

function cancelRoute(deps: StoredResponseRouteDeps): ScopedRoute {
  return route(
    "POST",
    "/cancel",
    {
      operationId: "cancelResponse",
      summary: "Cancel a background response",
      description: "The output so far is kept and charged. A response that has already ended is returned unchanged.",
      response: { description: "The response.", json: responseObject },
      errors: ["not_found", "invalid_request"],
    },
    async (exchange, principal) => {
      const id = idOf(exchange);
      if (!(await cancelStored(principal, id, deps))) throw notFound(id);
      const read = async () => Response.json((await find(exchange, principal, deps)).response);
      return await answerInTurn(exchange, principal, read);
    },
  );
}

async function listItems(exchange: Exchange, principal: Principal, deps: StoredResponseRouteDeps): Promise<Response> {
  const { after, limit, order } = readQuery(itemQuery, exchange.req.target, "include");
  let refusal: GatewayError | undefined;
  const mayRead = (size: number) => {
    refusal = exchange.req.hold(size);
    return refusal === undefined;
  };
  const items = await inputOf(await find(exchange, principal, deps), principal, mayRead, deps);
  if (refusal) throw refusal;
  if (order === "desc") items.reverse();
  const before = after === undefined ? -1 : items.findIndex(({ id }) => id === after);
  if (after !== undefined && before < 0) {
    throw fieldError(
      "after",
      "must be the id of an item of this response's input, such as last_id of the page before.",
    );
  }
  return Response.json(pageOf(items.slice(before + 1, before + 2 + limit), limit));
}

/**
 * Returns each input item once, at its first position. If a different item has the same id, it gets a new id, because
 * paging uses ids as cursors.
 */
async function inputOf(
  { id, input, response }: StoredResponse,
  principal: Principal,
  mayRead: MayRead,
  { responses, clock, requestLimits }: StoredResponseRouteDeps,
): Promise<(StoredItem & { id: string })[]> {
  const { bodyBytes } = requestLimits();
  // The limit is twice that of a request body, because a stored output may be longer than a request.
  const chain = await responses.chain(responseOwnerOf(principal), id, clock.nowSeconds(), 2 * bodyBytes, mayRead);
  const output = objectsOf(response["output"]).length;
  const all = "items" in chain ? chain.items.slice(0, chain.items.length - output) : input;
  const byId = new Map<string, StoredItem & { id: string }>();
  for (const [index, item] of all.entries()) {
    const itemId = String(item["id"]);
    const before = byId.get(itemId);
    if (!before) byId.set(itemId, { ...item, id: itemId });
    else if (!isDeepStrictEqual(before, item)) byId.set(`${itemId}_${index}`, { ...item, id: `${itemId}_${index}` });
  }
  return [...byId.values()];
}

async function find(
  exchange: Exchange,
  principal: Principal,
  { responses, clock }: StoredResponseRouteDeps,
): Promise<StoredResponse> {
  const id = idOf(exchange);
  const found = await responses.find(responseOwnerOf(principal), id, clock.nowSeconds());
  if (!found) throw notFound(id);
  return found;
}

function idOf({ params }: Exchange): string {
  return params["id"] ?? "";
}

/**
 * Returns the error for an unknown response. A deleted response, and a response of another owner, get the same error.
 */
function notFound(id: string): GatewayError {
  return new GatewayError(
    "not_found",
    `Response with id \`${shown(id)}\` not found. Responses are kept until they expire or are deleted, and none with \`store: false\`.`,
    { param: "response_id" },
  );
}

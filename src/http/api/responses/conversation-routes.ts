// OpenAI's endpoints for conversations and their items.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import { fieldError, GatewayError } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import type { ResponseKeeper } from "../../../domain/models/response-keeper.ts";
import type { Conversation, ConversationStore, StoredItem } from "../../../domain/models/stored-response.ts";
import { keyOf, makerOf, type Principal } from "../../../domain/principal.ts";
import type { Throttle } from "../../../policy/throttle.ts";
import type { RequestLimits } from "../../../requests/decode/decode-request.ts";
import { validate } from "../../../requests/decode/validation.ts";
import { ownItems } from "../../../requests/dialects/response/kept-items.ts";
import {
  addedItems,
  conversation,
  conversationRequest,
  conversationToWire,
  conversationUpdate,
  deletedConversation,
  itemsRequest,
} from "../../../wire/conversations.ts";
import { responseItem } from "../../../wire/responses.ts";
import { requireMetadata } from "../../../wire/stored-chats.ts";
import { readJsonBody } from "../../content/body.ts";
import { readQuery } from "../../content/query.ts";
import type { Exchange, RouteDoc, ScopedRoute } from "../../exchange/route.ts";
import { inTurn } from "../content-reads.ts";
import { listOf, pageQuery } from "../list.ts";
import { responseOwnerOf } from "../response-owner.ts";

export interface ConversationRouteDeps {
  conversations: ConversationStore;
  responseKeeper: Pick<ResponseKeeper, "retentionDays" | "requireRoom">;
  throttle: Pick<Throttle, "require">;
  clock: Clock;
  /** Returns the limits of a request. Called for every request, because a reload may change them. */
  requestLimits(): RequestLimits;
}

type Json = Readonly<Record<string, unknown>>;

const secondsPerDay = 86_400;

const include = z
  .string()
  .max(128)
  .optional()
  .meta({ description: "accepted, without effect: an item is returned as it was added" });
const order = z
  .enum(["asc", "desc"])
  .default("desc")
  .meta({ description: "asc (oldest first) or desc (newest first)" });
const itemsQuery = z.object({ ...pageQuery, order, include });
const itemQuery = z.object({ include });
const itemList = listOf(responseItem, "ConversationItemList");

export function conversationRoutes(deps: ConversationRouteDeps): ScopedRoute[] {
  return [...ownRoutes(deps), ...itemRoutes(deps)];
}

function ownRoutes(deps: ConversationRouteDeps): ScopedRoute[] {
  const { conversations, clock } = deps;
  return [
    route(
      "POST",
      "",
      {
        operationId: "createConversation",
        summary: "Create a conversation",
        description:
          "Responses that name it as `conversation` continue its items, and add their input and output to it. It expires after the retention time of stored chats, counted from the last addition.",
        requestBody: conversationRequest,
        bodyIsOptional: true,
        example: { metadata: { topic: "weather" }, items: [{ role: "user", content: "Hello" }] },
        response: { description: "The conversation.", json: conversation },
        errors: ["request_too_large", "unsupported_media_type"],
      },
      (exchange, principal) => create(exchange, principal, deps),
    ),
    route(
      "GET",
      "/:id",
      {
        operationId: "retrieveConversation",
        summary: "Retrieve a conversation",
        response: { description: "The conversation.", json: conversation },
        errors: ["not_found"],
      },
      async (exchange, principal) => {
        const found = await conversations.find(responseOwnerOf(principal), idOf(exchange), clock.nowSeconds());
        if (!found) throw notFound(exchange);
        return Response.json(conversationToWire(found));
      },
    ),
    route(
      "POST",
      "/:id",
      {
        operationId: "updateConversation",
        summary: "Label a conversation",
        requestBody: conversationUpdate,
        example: { metadata: { topic: "weather" } },
        response: { description: "The conversation with its new labels.", json: conversation },
        errors: ["not_found", "request_too_large", "unsupported_media_type"],
      },
      (exchange, principal) => label(exchange, principal, deps),
    ),
    route(
      "DELETE",
      "/:id",
      {
        operationId: "deleteConversation",
        summary: "Delete a conversation",
        description: "The items are deleted with the conversation. Its responses stay: delete them separately.",
        response: { description: "The conversation is deleted.", json: deletedConversation },
        errors: ["not_found"],
      },
      async (exchange, principal) => {
        const id = idOf(exchange);
        if (!(await conversations.delete(responseOwnerOf(principal), id, clock.nowSeconds()))) throw notFound(exchange);
        return Response.json({ id, object: "conversation.deleted", deleted: true });
      },
    ),
  ];
}

function itemRoutes(deps: ConversationRouteDeps): ScopedRoute[] {
  const { conversations, clock } = deps;
  return [
    route(
      "POST",
      "/:id/items",
      {
        operationId: "createConversationItems",
        summary: "Add items to a conversation",
        requestBody: itemsRequest,
        example: { items: [{ role: "user", content: "Hello" }] },
        response: { description: "The added items.", json: addedItems },
        errors: ["not_found", "request_too_large", "unsupported_media_type"],
      },
      (exchange, principal) => addItems(exchange, principal, deps),
    ),
    route(
      "GET",
      "/:id/items",
      {
        operationId: "listConversationItems",
        summary: "List the items of a conversation",
        query: itemsQuery,
        response: { description: "One page.", json: itemList },
        errors: ["not_found"],
      },
      (exchange, principal) => listItems(exchange, principal, deps),
    ),
    route(
      "GET",
      "/:id/items/:item",
      {
        operationId: "retrieveConversationItem",
        summary: "Retrieve an item of a conversation",
        query: itemQuery,
        response: { description: "The item.", json: responseItem },
        errors: ["not_found"],
      },
      async (exchange, principal) => {
        readQuery(itemQuery, exchange.req.target, "include");
        const owner = responseOwnerOf(principal);
        const item = await conversations.findItem(owner, idOf(exchange), itemOf(exchange), clock.nowSeconds());
        if (!item) throw itemNotFound(exchange);
        return Response.json(item);
      },
    ),
    route(
      "DELETE",
      "/:id/items/:item",
      {
        operationId: "deleteConversationItem",
        summary: "Delete an item of a conversation",
        response: { description: "The conversation without the item.", json: conversation },
        errors: ["not_found"],
      },
      async (exchange, principal) => {
        const [owner, now] = [responseOwnerOf(principal), clock.nowSeconds()];
        if (!(await conversations.deleteItem(owner, idOf(exchange), itemOf(exchange), now)))
          throw itemNotFound(exchange);
        const found = await conversations.find(owner, idOf(exchange), now);
        if (!found) throw notFound(exchange);
        return Response.json(conversationToWire(found));
      },
    ),
  ];
}

/**
 * Declares a route. Reading and deleting need the scope for stored chats. Creating and changing need the scope for
 * model requests.
 */
function route(
  method: ScopedRoute["method"],
  path: string,
  doc: Omit<RouteDoc, "tag" | "parameters">,
  handle: ScopedRoute["handle"],
): ScopedRoute {
  const names = [
    { name: "id", in: "path" as const, description: "Id of the conversation." },
    { name: "item", in: "path" as const, description: "Id of the item." },
  ];
  const parameters = names.filter(({ name }) => path.includes(`:${name}`));
  return {
    ...{ method, path: `/v1/conversations${path}`, access: method === "POST" ? "chat:write" : "chat:read" },
    doc: { ...doc, tag: "Conversations", ...(parameters.length > 0 ? { parameters } : {}) },
    handle: method === "GET" ? inTurn(handle) : handle,
  };
}

async function create(exchange: Exchange, principal: Principal, deps: ConversationRouteDeps): Promise<Response> {
  const { conversations, responseKeeper, throttle, clock } = deps;
  // OpenAI's SDKs send no body if all members are left out.
  const body = exchange.req.hasBody ? (await readJsonBody(exchange.req, deps.requestLimits())).body : {};
  validate(conversationRequest, body);
  requireKept(responseKeeper);
  const { environment, account, appId } = principal;
  const createdAt = clock.nowSeconds();
  const made: Conversation = {
    id: `conv_${randomUUID().replaceAll("-", "")}`,
    accountId: account.id,
    environment,
    keyId: keyOf(principal).id,
    appId,
    personId: keyOf(principal).personId,
    madeBy: makerOf(principal),
    createdAt,
    expiresAt: createdAt + responseKeeper.retentionDays * secondsPerDay,
    metadata: requireMetadata(body["metadata"]),
  };
  const items = givenItems(body);
  await throttle.require("conversation", principal, sizeOf(items));
  await responseKeeper.requireRoom(principal.account.id, sizeOf(items));
  await conversations.create(made, items);
  return Response.json(conversationToWire(made));
}

async function label(exchange: Exchange, principal: Principal, deps: ConversationRouteDeps): Promise<Response> {
  const { conversations, throttle, clock } = deps;
  const { body } = await readJsonBody(exchange.req, deps.requestLimits());
  validate(conversationUpdate, body);
  const labels = requireMetadata(body["metadata"]);
  await throttle.require("conversation", principal);
  const owner = responseOwnerOf(principal);
  const found = await conversations.setMetadata(owner, idOf(exchange), labels, clock.nowSeconds());
  if (!found) throw notFound(exchange);
  return Response.json(conversationToWire(found));
}

async function addItems(exchange: Exchange, principal: Principal, deps: ConversationRouteDeps): Promise<Response> {
  const { conversations, responseKeeper, throttle, clock } = deps;
  const { body } = await readJsonBody(exchange.req, deps.requestLimits());
  validate(itemsRequest, body);
  requireKept(responseKeeper);
  const items = givenItems(body);
  await throttle.require("conversation", principal, sizeOf(items));
  await responseKeeper.requireRoom(principal.account.id, sizeOf(items));
  const now = clock.nowSeconds();
  const expiresAt = now + responseKeeper.retentionDays * secondsPerDay;
  const added = await conversations.add(responseOwnerOf(principal), idOf(exchange), items, expiresAt, now);
  if (!added) throw notFound(exchange);
  const ids = { first_id: added[0]?.["id"], last_id: added.at(-1)?.["id"] };
  return Response.json({ object: "list", data: added, ...ids, has_more: false });
}

/** Throws if the storage of responses is disabled. A reload may disable it after a conversation was created. */
function requireKept({ retentionDays }: ConversationRouteDeps["responseKeeper"]): void {
  if (retentionDays > 0) return;
  throw new GatewayError(
    "invalid_request",
    "Conversations are not kept at this server, as stored_chats.retention_days is 0. Send the items of the conversation as `input`.",
  );
}

/** Returns the length of the items' JSON in characters. */
function sizeOf(items: readonly StoredItem[]): number {
  return items.length === 0 ? 0 : JSON.stringify(items).length;
}

/** Returns the items in a request. Throws `invalid_request` for an invalid item. */
function givenItems({ items }: Json): readonly StoredItem[] {
  const given = (items ?? []) as readonly Json[];
  for (const [index, { type, role }] of given.entries()) {
    const isNamed = type !== undefined && type !== null;
    if (type === "item_reference" || (!isNamed && (role === undefined || role === null))) {
      throw fieldError(
        `items[${index}]`,
        "must be an item itself, with a `type` or a `role`; references are not resolved here.",
      );
    }
  }
  return ownItems(given);
}

async function listItems(exchange: Exchange, principal: Principal, deps: ConversationRouteDeps): Promise<Response> {
  const { after, limit, order } = readQuery(itemsQuery, exchange.req.target, "include");
  const [owner, id, now] = [responseOwnerOf(principal), idOf(exchange), deps.clock.nowSeconds()];
  const page = await deps.conversations.list(owner, id, { after, limit, order }, now);
  if (!page) {
    if (!(await deps.conversations.find(owner, id, now))) throw notFound(exchange);
    throw fieldError("after", "must be the id of an item of this conversation, such as last_id of the page before.");
  }
  const { items, hasMore } = page;
  const ids = { first_id: items[0]?.["id"] ?? null, last_id: items.at(-1)?.["id"] ?? null };
  return Response.json({ object: "list", data: items, ...ids, has_more: hasMore });
}

function idOf({ params }: Exchange): string {
  return params["id"] ?? "";
}

function itemOf({ params }: Exchange): string {
  return params["item"] ?? "";
}

/**
 * Returns the error for an unknown conversation. A deleted conversation, and a conversation of another owner, get the
 * same error.
 */
function notFound(exchange: Exchange): GatewayError {
  return new GatewayError(
    "not_found",
    `Conversation with id \`${shown(idOf(exchange))}\` not found. Conversations are kept until they expire or are deleted.`,
    { param: "conversation_id" },
  );
}

function itemNotFound(exchange: Exchange): GatewayError {
  return new GatewayError(
    "not_found",
    `Item with id \`${shown(itemOf(exchange))}\` not found in the conversation \`${shown(idOf(exchange))}\`.`,
    { param: "item_id" },
  );
}

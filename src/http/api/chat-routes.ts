// OpenAI's endpoints for stored chat completions: list, read, label and delete.

import { z } from "zod";
import type { Clock } from "../../base/clock.ts";
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import type { ChatOwner, ChatStore, ChatWriter, StoredChat } from "../../domain/models/stored-chat.ts";
import { ownOnly, type Principal } from "../../domain/principal.ts";
import { AccountTurns } from "../../policy/account-turns.ts";
import type { Throttle } from "../../policy/throttle.ts";
import type { BodyLimits } from "../../requests/decode/parse-body.ts";
import { validate } from "../../requests/decode/validation.ts";
import {
  deletedChat,
  metadataUpdate,
  requireMetadata,
  storedChat,
  storedChatToWire,
  storedMessage,
  storedMessagesToWire,
} from "../../wire/stored-chats.ts";
import { readJsonBody } from "../content/body.ts";
import { readPrefixed, readQuery } from "../content/query.ts";
import type { Answer, Exchange, RouteDoc, ScopedRoute } from "../exchange/route.ts";
import { answerInTurn, inTurn } from "./content-reads.ts";
import { listOf, pageOf, pageQuery } from "./list.ts";

export interface ChatRouteDeps {
  chats: ChatStore;
  chatWriter: Pick<ChatWriter, "flush">;
  clock: Clock;
  throttle: Pick<Throttle, "require">;
  /** Returns the limits of a request body. Called for every request, because a reload may change them. */
  requestLimits(): BodyLimits;
}

/**
 * Maximum running and waiting searches of an account. A search reads megabytes on the main thread, so only one
 * runs at a time.
 */
const maxSearches = 8;

/** Maximum milliseconds to wait for pending writes, so that a client finds the chat that it just stored. */
const maxFlushMs = 1_000;

const order = z.enum(["asc", "desc"]).default("asc").meta({ description: "asc (oldest first) or desc (newest first)" });
const chatQuery = z.object({
  ...pageQuery,
  order,
  model: z.string().min(1).max(256).optional().meta({ description: "a model id; only its completions are listed" }),
  search: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: "1 to 200 characters, in any case, that a message or the answer contains" }),
});
const messageQuery = z.object({ ...pageQuery, order });

const chatList = listOf(storedChat, "StoredChatCompletionList");
const messageList = listOf(storedMessage, "StoredChatMessageList");

export function chatRoutes(deps: ChatRouteDeps): ScopedRoute[] {
  const route = (
    method: ScopedRoute["method"],
    path: string,
    doc: Omit<RouteDoc, "tag">,
    handle: ScopedRoute["handle"],
  ): ScopedRoute => ({
    method,
    path: `/v1/chat/completions${path}`,
    access: "chat:read",
    doc: {
      ...doc,
      tag: "Stored chats",
      ...(path === ""
        ? {}
        : { parameters: [{ name: "id", in: "path" as const, description: "Id of the completion." }] }),
    },
    async handle(exchange, principal) {
      await settledWithin(deps.chatWriter.flush(), maxFlushMs);
      return handle(exchange, principal);
    },
  });
  const { chats, clock } = deps;
  const readChat = async (exchange: Exchange, principal: Principal) =>
    Response.json(storedChatToWire(await find(exchange, principal, deps)));
  const searches = new AccountTurns({ maxRunning: 1, maxOfAccount: maxSearches, what: "searches of stored chats" });
  return [
    route(
      "GET",
      "",
      {
        operationId: "listChatCompletions",
        summary: "List stored chat completions",
        description:
          "Lists completions that were created with `store: true` and have not expired. `metadata[name]=value` lists only completions with this label, and can be repeated. A page may have fewer entries than `limit` if they are large, or none if `search` read many without a match. `has_more` says whether more remain, and `last_id` where to continue.",
        query: chatQuery,
        response: { description: "One page.", json: chatList },
      },
      (exchange, principal) => list(exchange, principal, deps, searches),
    ),
    route(
      "GET",
      "/:id",
      {
        operationId: "retrieveChatCompletion",
        summary: "Retrieve a stored chat completion",
        response: { description: "The completion.", json: storedChat },
        errors: ["not_found"],
      },
      inTurn(readChat),
    ),
    route(
      "POST",
      "/:id",
      {
        operationId: "updateChatCompletion",
        summary: "Label a stored chat completion",
        requestBody: metadataUpdate,
        example: { metadata: { topic: "weather" } },
        response: { description: "The completion with its new labels.", json: storedChat },
        errors: ["not_found", "request_too_large", "unsupported_media_type"],
      },
      async (exchange, principal) => {
        const { body } = await readJsonBody(exchange.req, deps.requestLimits());
        validate(metadataUpdate, body);
        const metadata = requireMetadata(body["metadata"]);
        const id = idOf(exchange);
        await deps.throttle.require("conversation", principal);
        if (!(await chats.setMetadata(chatOwnerOf(principal), id, metadata, clock.nowSeconds()))) throw notFound(id);
        return await answerInTurn(exchange, principal, () => readChat(exchange, principal));
      },
    ),
    route(
      "DELETE",
      "/:id",
      {
        operationId: "deleteChatCompletion",
        summary: "Delete a stored chat completion",
        response: { description: "The completion is deleted.", json: deletedChat },
        errors: ["not_found"],
      },
      async (exchange, principal) => {
        const id = idOf(exchange);
        if (!(await chats.delete(chatOwnerOf(principal), id, clock.nowSeconds()))) throw notFound(id);
        return Response.json({ object: "chat.completion.deleted", id, deleted: true });
      },
    ),
    route(
      "GET",
      "/:id/messages",
      {
        operationId: "listChatCompletionMessages",
        summary: "List the messages of a stored chat completion",
        description: "The messages of its request.",
        query: messageQuery,
        response: { description: "One page.", json: messageList },
        errors: ["not_found"],
      },
      inTurn((exchange, principal) => listMessages(exchange, principal, deps)),
    ),
  ];
}

async function list(
  exchange: Exchange,
  principal: Principal,
  { chats, clock }: ChatRouteDeps,
  searches: AccountTurns,
): Promise<Answer> {
  const { req } = exchange;
  const { model, search, after, limit, order } = readQuery(chatQuery, req.target, "metadata");
  const metadata = requireMetadata(readPrefixed(req.target, "metadata"));
  const filter = {
    metadata,
    ...(model === undefined ? {} : { model }),
    ...(search === undefined ? {} : { search }),
  };
  const answer = async () => {
    const page = await chats.list(chatOwnerOf(principal), filter, { after, limit, order }, clock.nowSeconds());
    if (!page) throw unknownAfter("stored chat completion");
    const { chats: found, hasMore, lastId } = page;
    const cursor = lastId === undefined ? {} : { last_id: lastId };
    return Response.json({ ...pageOf(found.map(storedChatToWire), limit), ...cursor, has_more: hasMore });
  };
  return await answerInTurn(exchange, principal, answer, search === undefined ? undefined : searches);
}

async function listMessages(exchange: Exchange, principal: Principal, deps: ChatRouteDeps): Promise<Response> {
  const { after, limit, order } = readQuery(messageQuery, exchange.req.target);
  const id = idOf(exchange);
  const stored = await deps.chats.findMessages(chatOwnerOf(principal), id, deps.clock.nowSeconds());
  if (!stored) throw notFound(id);
  const messages = storedMessagesToWire(id, stored);
  if (order === "desc") messages.reverse();
  const before = after === undefined ? -1 : messages.findIndex((message) => message.id === after);
  if (after !== undefined && before < 0) throw unknownAfter("message of this completion");
  return Response.json(pageOf(messages.slice(before + 1, before + 2 + limit), limit));
}

async function find(exchange: Exchange, principal: Principal, { chats, clock }: ChatRouteDeps): Promise<StoredChat> {
  const id = idOf(exchange);
  const chat = await chats.find(chatOwnerOf(principal), id, clock.nowSeconds());
  if (!chat) throw notFound(id);
  return chat;
}

function idOf({ params }: Exchange): string {
  return params["id"] ?? "";
}

export function chatOwnerOf(principal: Principal): ChatOwner {
  const { account, environment, appId } = principal;
  return { accountId: account.id, environment, appId, personId: ownOnly(principal) };
}

/** Returns the error for an unknown chat. A deleted chat, and a chat of another owner, get the same error. */
function notFound(id: string): GatewayError {
  return new GatewayError(
    "not_found",
    `There is no stored chat completion \`${shown(id)}\`. Only those made with \`store: true\` are kept, until they expire; GET /v1/chat/completions lists them.`,
  );
}

function unknownAfter(what: string): GatewayError {
  return invalidRequest(
    `after: must be the id of a ${what}, such as last_id of the page before; there is none with this id.`,
  );
}

async function settledWithin(work: Promise<void>, limitMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  try {
    await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

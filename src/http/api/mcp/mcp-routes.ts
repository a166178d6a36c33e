// The endpoints of the Model Context Protocol: one path for all MCP servers together, and one path for each server.
import { z } from "zod";
import { Cancellation } from "../../../base/cancellation.ts";
import { forbidden, invalidRequest } from "../../../base/errors.ts";
import type { Principal } from "../../../domain/principal.ts";
import { messageNames } from "../../../domain/tools/message-names.ts";
import type { ClientRequest } from "../../../mcp/server/client-call.ts";
import { readJsonBody } from "../../content/body.ts";
import type { Answer, Exchange, RouteDoc, ScopedRoute } from "../../exchange/route.ts";
import { answerOf, webRequest } from "./web-request.ts";

export interface McpRouteDeps {
  mcp: {
    /** Answers an MCP request. The modules for MCP are loaded by the first request. */
    answer(request: Request, from: ClientRequest, body: unknown): Promise<Response>;
  };
  /** Reports whether web pages of this origin may call the MCP endpoints. */
  isAllowedOrigin(origin: string, exchange: Exchange): boolean;
  installationUrl(): string;
}

/** Limits of an MCP message. They are low, because files belong in MCP resources and not in tool arguments. */
const limits = { bodyBytes: 4 * 1024 * 1024, depth: 64 };

const message = z.looseObject({ jsonrpc: z.literal("2.0") }).meta({ id: "JsonRpcMessage" });

/** The JSON of an error, whether it comes from MCP or from the gateway. */
const fault = z.looseObject({ error: z.looseObject({ message: z.string() }) }).meta({ id: "McpError" });
const faults = Object.fromEntries(
  [
    [400, "The message or a header violates the protocol."],
    [403, "The credential, or a page of this origin, may not use tools."],
    [404, "The session, method or server does not exist."],
    [405, "The client's protocol revision has no such request, or the request needs a session."],
    [406, "The client accepts neither JSON nor events."],
    [409, "The session already has a stream."],
    [413, "The message is too large."],
    [415, "The message is not JSON."],
    [429, "Too many requests, sessions, or requests of one session at a time."],
    [503, "The gateway is stopping."],
  ].map(([status, text]) => [status, { name: `McpError${status}`, description: String(text), json: fault }]),
);

const noted = { name: "McpNoted", description: "The notification or response was accepted.", json: z.unknown() };

const words = {
  POST: ["callTools", "Send a message of the Model Context Protocol", "The answer, or its events."],
  GET: [
    "followTools",
    "Open the event stream of an MCP session",
    "Events of the session, until the client or the gateway closes the stream.",
  ],
  DELETE: ["endToolSession", "End a session of the Model Context Protocol", "The session is over."],
} as const;

const description =
  "Streamable HTTP of the Model Context Protocol, revisions 2025-06-18, 2025-11-25 and 2026-07-28. Names of tools and prompts are prefixed with the name of their server. `/mcp/{server}` offers a single server, with its original names.";

export function mcpRoutes(deps: McpRouteDeps): ScopedRoute[] {
  return (["POST", "GET", "DELETE"] as const).flatMap((method) => [
    routeOf(method, "/mcp", deps),
    routeOf(method, "/mcp/:server", deps),
  ]);
}

function routeOf(method: keyof typeof words, path: string, deps: McpRouteDeps): ScopedRoute {
  const [operationId, summary, responseText] = words[method];
  const isOfOne = path !== "/mcp";
  const doc: RouteDoc = {
    operationId: isOfOne ? `${operationId}OfServer` : operationId,
    summary: isOfOne ? `${summary}, of one server` : summary,
    ...(method === "POST" && { description, requestBody: message, example: { jsonrpc: "2.0", id: 1, method: "ping" } }),
    ...(isOfOne && { parameters: [{ name: "server", in: "path" as const, description: "Name of the server." }] }),
    tag: "Tools",
    response: { description: responseText, ...(method === "POST" && { json: message }) },
    otherResponses: { ...faults, ...(method === "POST" && { 202: noted }) },
  };
  return { method, path, access: "tools:use", doc, handle: (exchange, principal) => answer(exchange, principal, deps) };
}

async function answer(exchange: Exchange, principal: Principal, deps: McpRouteDeps): Promise<Answer> {
  const { req, requestId, trace, params } = exchange;
  const origin = req.headers.get("origin");
  if (origin !== null && !deps.isAllowedOrigin(origin, exchange)) {
    throw forbidden("Pages of this origin may not use tools. An operator names origins in `cors.origins`.");
  }
  const read = req.method === "POST" ? await readJsonBody(req, limits) : undefined;
  // Cancelled when the client leaves, or when the gateway ends the stream.
  const clientGone = new Cancellation();
  req.clientGone.onCancel(() => clientGone.cancel(req.clientGone.reason));
  const from: ClientRequest = {
    ...{ principal, requestId, trace, memoryAccount: req.memoryAccount, clientGone },
    only: params["server"],
    listing: listingOf(req.target),
    isFresh: /\bno-cache\b/i.test(req.headers.get("cache-control") ?? ""),
  };
  if (read) messageNames.require(read.body);
  if (read) exchange.line["mcp_method"] = methodOf(read.body);
  const request = webRequest(req, deps.installationUrl(), { body: read?.text, signal: clientGone.signal });
  return answerOf(await deps.mcp.answer(request, from, read?.body), clientGone);
}

function listingOf(target: string): ClientRequest["listing"] {
  const query = target.indexOf("?");
  const listing = query < 0 ? undefined : (new URLSearchParams(target.slice(query)).get("tools") ?? undefined);
  if (listing === undefined || listing === "all" || listing === "search") return listing;
  throw invalidRequest("tools must be `all` or `search`.", { param: "tools" });
}

function methodOf({ method }: Readonly<Record<string, unknown>>): string {
  return typeof method === "string" ? method.slice(0, 64) : "answer";
}

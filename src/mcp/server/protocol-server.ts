// Wraps the SDK's server for one client connection. Requests and results are passed on unchanged.
import { CLIENT_CAPABILITIES_META_KEY, Server, type ServerContext } from "@modelcontextprotocol/server";
import { Cancellation } from "../../base/cancellation.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import { type ClientCall, type ClientRequest, keepAsked } from "./client-call.ts";
import type { RequestHandler } from "./request-handler.ts";
import { refused } from "./rpc-error.ts";
import type { ServerInfo } from "./server-info.ts";
import { isObject } from "./server-lists.ts";

export const serverInfo = { name: "headrace", title: "Headrace", version: "1" } as const;

/** A schema that accepts anything: the client and the MCP server check messages, so the gateway does not. */
const anything = {
  "~standard": { version: 1, vendor: "headrace", validate: (value: unknown) => ({ value }) },
} as const;
/** Milliseconds that a client has to answer a server's request, such as a form. */
const askedMs = 5 * 60_000;

/** Creates the SDK's server. `requestOf` returns the request that is being handled. */
export function protocolServer(
  handler: RequestHandler,
  isLegacy: boolean,
  { capabilities, instructions }: ServerInfo,
  requestOf: (context: ServerContext) => ClientRequest,
): Server {
  const server = new Server(serverInfo, {
    capabilities,
    ...(instructions !== undefined && { instructions }),
  });
  const answer = async (method: string, params: unknown, context: ServerContext): Promise<Record<string, unknown>> => {
    const call = callOf(server, isLegacy, requestOf(context), context);
    const asked = restored(params, context);
    const letGo = isLegacy ? keptBeyondClient(call, asked) : () => {};
    try {
      return { ...(await handler.answer(method, asked, call)) };
    } finally {
      letGo();
    }
  };
  server.fallbackRequestHandler = (request, context) => {
    if (isLegacy) endIfCancelled(server, context);
    return answer(request.method, request.params, context);
  };
  // In later protocol revisions, tasks are an extension, for which the SDK needs separate handlers.
  if (!isLegacy) {
    for (const method of ["tasks/get", "tasks/cancel"]) {
      server.setRequestHandler(method, { params: anything }, (params, context) => answer(method, params, context));
    }
  }
  return server;
}

/**
 * Answers a request that the client cancelled. The SDK sends nothing, so the stream and the request id would stay in
 * use until the session ends.
 */
function endIfCancelled(server: Server, { mcpReq: { id, signal } }: ServerContext): void {
  const error = { code: refused, message: "Its client cancelled the request." };
  // Ignore the error: the client may have disconnected.
  const end = () => void server.transport?.send({ jsonrpc: "2.0", id, error }).catch(() => {});
  signal.addEventListener("abort", end, { once: true });
}

/**
 * If the client disconnects, counts the parameters in the key's memory from then on, because a client with a session
 * may return.
 */
function keptBeyondClient(call: ClientCall, asked: JsonObject): () => void {
  let letGo = () => {};
  const onLeave = () => {
    try {
      letGo = keepAsked(call, asked);
    } catch (error) {
      call.cancellation.cancel(error);
    }
  };
  call.clientGone.onCancel(onLeave);
  return () => {
    call.clientGone.off(onLeave);
    letGo();
  };
}

/** Adds parameters again that the SDK has removed. */
function restored(params: unknown, { mcpReq }: ServerContext): JsonObject {
  const plain = isObject(params) ? params : {};
  const { inputResponses } = mcpReq;
  const requestState: unknown = mcpReq.requestState();
  return {
    ...plain,
    ...(inputResponses !== undefined && { inputResponses }),
    ...(requestState !== undefined && { requestState }),
  };
}

function callOf(server: Server, isLegacy: boolean, request: ClientRequest, context: ServerContext): ClientCall {
  const { mcpReq } = context;
  const cancellation = new Cancellation();
  const { signal } = mcpReq;
  if (signal.aborted) cancellation.cancel(signal.reason);
  else signal.addEventListener("abort", () => cancellation.cancel(signal.reason), { once: true });
  const envelope: JsonObject = { ...mcpReq.envelope };
  const declared: unknown = isLegacy ? server.getClientCapabilities() : envelope[CLIENT_CAPABILITIES_META_KEY];
  return {
    ...request,
    capabilities: isObject(declared) ? declared : {},
    isAskable: isLegacy,
    cancellation,
    notify(method, params) {
      // Ignore the error: the client may have disconnected.
      if (method === "notifications/message") void log(context, params).catch(() => {});
      else void mcpReq.notify({ method, params: { ...params } }).catch(() => {});
    },
    async ask(method, params) {
      const options = { timeout: askedMs, signal };
      return (await mcpReq.send({ method, params: { ...params } }, anything, options)) as JsonObject;
    },
  };
}

type Level = Parameters<ServerContext["mcpReq"]["log"]>[0];

/** Sends a log message to the client. The SDK drops it if the client did not request this level. */
async function log({ mcpReq }: ServerContext, { level, data, logger }: JsonObject): Promise<void> {
  await mcpReq.log(String(level) as Level, data, typeof logger === "string" ? logger : undefined);
}

// Wraps the SDK's server for one client connection. Requests go to the request handler unchanged, and results go back
// unchanged.
import { CLIENT_CAPABILITIES_META_KEY, Server, type ServerContext } from "@modelcontextprotocol/server";
import { Cancellation } from "../../base/cancellation.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import { type ClientCall, type ClientRequest, keepAsked } from "./client-call.ts";
import type { RequestHandler } from "./request-handler.ts";
import { refused } from "./rpc-error.ts";
import type { ServerInfo } from "./server-info.ts";
import { isObject } from "./server-lists.ts";

export const serverInfo = { name: "headrace", title: "Headrace", version: "1" } as const;

/** Accepts any value: the sender and the receiver check messages, so the gateway does not. */
const anything = {
  "~standard": { version: 1, vendor: "headrace", validate: (value: unknown) => ({ value }) },
} as const;
/** Milliseconds that a client has to fill in a form or to sample a model. */
const askedMs = 5 * 60_000;

/** Creates the server. `requestOf` returns the sender of the current request. */
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
  // Later revisions have tasks as an extension, whose requests the SDK does not pass to the fallback handler.
  if (!isLegacy) {
    for (const method of ["tasks/get", "tasks/cancel"]) {
      server.setRequestHandler(method, { params: anything }, (params, context) => answer(method, params, context));
    }
  }
  return server;
}

/**
 * Answers a request that its client cancelled. The SDK sends no response, so without this the stream would stay open,
 * and the request id taken, for as long as the session lasts.
 */
function endIfCancelled(server: Server, { mcpReq: { id, signal } }: ServerContext): void {
  const error = { code: refused, message: "Its client cancelled the request." };
  // The client may have disconnected as well.
  const end = () => void server.transport?.send({ jsonrpc: "2.0", id, error }).catch(() => {});
  signal.addEventListener("abort", end, { once: true });
}

/**
 * Charges the parameters to the key after the client disconnects, because a client with a session may return for the
 * result.
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

/** Restores parameters that the SDK removes and passes to its own handlers separately. */
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
      // Notifications are not awaited, and fail silently if the client has disconnected.
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

/** Sends a log message. The SDK drops it unless the client asked for that level. */
async function log({ mcpReq }: ServerContext, { level, data, logger }: JsonObject): Promise<void> {
  await mcpReq.log(String(level) as Level, data, typeof logger === "string" ? logger : undefined);
}

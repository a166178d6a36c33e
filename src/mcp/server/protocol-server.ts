// A server of the protocol's own package for one connection: what it is asked goes to the handler as it came, and back.
import { CLIENT_CAPABILITIES_META_KEY, Server, type ServerContext } from "@modelcontextprotocol/server";
import { Cancellation } from "../../base/cancellation.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import { type ClientCall, type ClientRequest, keepAsked } from "./client-call.ts";
import type { RequestHandler } from "./request-handler.ts";
import { refused } from "./rpc-error.ts";
import type { ServerInfo } from "./server-info.ts";
import { isObject } from "./server-lists.ts";

export const serverInfo = { name: "headrace", title: "Headrace", version: "1" } as const;

/** What passes through is checked by whoever made it, and read by whoever gets it: not in between. */
const anything = {
  "~standard": { version: 1, vendor: "headrace", validate: (value: unknown) => ({ value }) },
} as const;
/** A client may think about a form, or what a model shall say, for so long. */
const askedMs = 5 * 60_000;

/** `requestOf`: who sent the request at hand. */
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
  // Later revisions have them by an extension, which the package gives to no fallback.
  if (!isLegacy) {
    for (const method of ["tasks/get", "tasks/cancel"]) {
      server.setRequestHandler(method, { params: anything }, (params, context) => answer(method, params, context));
    }
  }
  return server;
}

/**
 * The package answers nothing to a request that its client cancelled: its stream would stay open, and its id taken, for as
 * long as the session lasts.
 */
function endIfCancelled(server: Server, { mcpReq: { id, signal } }: ServerContext): void {
  const error = { code: refused, message: "Its client cancelled the request." };
  // The client may have left as well.
  const end = () => void server.transport?.send({ jsonrpc: "2.0", id, error }).catch(() => {});
  signal.addEventListener("abort", end, { once: true });
}

/** A client with a session may come back for the answer. Until it is there, what was asked counts for its key. */
function keptBeyondClient(call: ClientCall, asked: JsonObject): () => void {
  let letGo = () => {};
  const left = () => {
    try {
      letGo = keepAsked(call, asked);
    } catch (error) {
      call.cancellation.cancel(error);
    }
  };
  call.left.onCancel(left);
  return () => {
    call.left.off(left);
    letGo();
  };
}

/** The package takes out of the parameters what its own handlers are given beside them. */
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
  const told: unknown = isLegacy ? server.getClientCapabilities() : envelope[CLIENT_CAPABILITIES_META_KEY];
  return {
    ...request,
    capabilities: isObject(told) ? told : {},
    isAskable: isLegacy,
    cancellation,
    notify(method, params) {
      // Nobody waits for what is told on the way, and a client that has left is told nothing.
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

/** The package tells it only to a client that asked for lines of that level. */
async function log({ mcpReq }: ServerContext, { level, data, logger }: JsonObject): Promise<void> {
  await mcpReq.log(String(level) as Level, data, typeof logger === "string" ? logger : undefined);
}

// Sends a request to an MCP server. Requests that the server sends meanwhile are answered by the client or by a model
// of the gateway.
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import {
  asksTooOften,
  type ClientSession,
  type JsonObject,
  maxAskedBack,
  type ToolAnswer,
  type ToolExchange,
} from "../../domain/tools/client-session.ts";
import { type McpServer, maxCallMs } from "../../domain/tools/mcp-server.ts";
import type { ToolSampler } from "../../domain/tools/tool-use.ts";
import type { ClientCall } from "./client-call.ts";
import { requireElicitable, requireElicitableError } from "./elicitation.ts";
import { methodNotFound, missingCapability, RpcError } from "./rpc-error.ts";
import { isObject } from "./server-lists.ts";
import { withoutTasksExtension } from "./tasks.ts";

/** Maximum characters of the server's error text that the client gets. */
const maxSaidLength = 1_000;

/**
 * Sends a request to a server and resolves to its result. In later revisions the result may contain requests to the
 * client. Rejects with the server's error.
 */
export async function askServer(
  { server, link, method, params }: { server: McpServer; link: ClientSession; method: string; params: JsonObject },
  call: ClientCall,
  sampler: ToolSampler,
  clock: Pick<Clock, "monotonicMs">,
): Promise<JsonObject> {
  const maxMs = maxCallMs(server);
  const untilMs = clock.monotonicMs() + maxMs;
  let asked = 0;
  const next = async ({ resultType, inputRequests, requestState }: JsonObject) => {
    if (!isObject(inputRequests)) return undefined;
    const wants = Object.entries(inputRequests);
    for (const [, one] of wants) requireFit(server.name, one, call);
    // A task requests input by its status, not by a result.
    if (resultType !== "input_required") return undefined;
    if (!call.isAskable && !wants.every(([, one]) => isOurs(one, call))) return undefined;
    // Count a round without any request too, so that rounds are limited.
    asked += Math.max(1, wants.length);
    if (asked > maxAskedBack) throw asksTooOften(server.name);
    const inputResponses: Record<string, JsonObject> = {};
    for (const [key, one] of wants) {
      if (!isObject(one)) continue;
      if (clock.monotonicMs() >= untilMs) {
        const message = `The call of the MCP server "${server.name}", which asked back, did not end within ${maxMs} ms.`;
        throw new GatewayError("upstream_timeout", message);
      }
      const wanted = isObject(one["params"]) ? one["params"] : {};
      inputResponses[key] = await answerAsked(String(one["method"]), wanted, call, sampler);
    }
    return { method, params: { ...params, inputResponses, ...(requestState !== undefined && { requestState }) } };
  };
  const answer = await link.request(method, params, { ...exchangeOf(call, params, sampler, server.name), next });
  return resultOf(answer, call, server.name);
}

function requireFit(server: string, asked: unknown, { capabilities }: ClientCall): void {
  if (!isObject(asked) || asked["method"] !== "elicitation/create") return;
  requireElicitable(server, isObject(asked["params"]) ? asked["params"] : {}, capabilities);
}

/** Returns the options for sending a call to `server`, which is a name for error messages. */
export function exchangeOf(
  call: ClientCall,
  { _meta }: JsonObject,
  sampler: ToolSampler,
  server: string,
): ToolExchange {
  const progressToken = isObject(_meta) ? _meta["progressToken"] : undefined;
  const { memoryAccount, cancellation, capabilities, headers } = call;
  const samples = call.principal.scopes.has("chat:write") ? { sampling: {} } : {};
  return {
    ...{ memoryAccount, cancellation, headers },
    // The tasks of earlier revisions are not the tasks extension, so that capability is removed.
    clientCapabilities: { ...samples, ...(call.isAskable ? withoutTasksExtension(capabilities) : capabilities) },
    notified: (method, params) => {
      if (method !== "notifications/progress") call.notify(method, params);
      else if (progressToken !== undefined) call.notify(method, { ...params, progressToken });
    },
    asked: async (method, params) => {
      requireFit(server, { method, params }, call);
      return await answerAsked(method, params, call, sampler);
    },
  };
}

async function answerAsked(
  method: string,
  params: JsonObject,
  call: ClientCall,
  sampler: ToolSampler,
): Promise<JsonObject> {
  const { principal, capabilities, lacking, cancellation } = call;
  const needed = neededCapability(method);
  const isModel = isOurs({ method }, call);
  const isLacking = needed !== undefined && capabilities[needed] === undefined;
  if (isLacking && !(isModel && principal.scopes.has("chat:write"))) lacking?.add(needed);
  if (isModel) return await sampler.sample(principal, params, cancellation.signal);
  if (needed === undefined || isLacking) {
    throw new RpcError(methodNotFound, `The client has no ${needed ?? "such"} capability.`);
  }
  return await call.ask(method, params);
}

/** Reports whether a model of the gateway must answer, because the client does not support sampling. */
function isOurs(asked: unknown, { capabilities }: ClientCall): boolean {
  return isObject(asked) && asked["method"] === "sampling/createMessage" && capabilities["sampling"] === undefined;
}

function neededCapability(method: string): string | undefined {
  if (method === "sampling/createMessage") return "sampling";
  if (method === "elicitation/create") return "elicitation";
  return method === "roots/list" ? "roots" : undefined;
}

/** Returns the result, or throws the server's error. `server` is a name for error messages. */
export function resultOf(answer: ToolAnswer, { lacking, capabilities }: ClientCall, server: string): JsonObject {
  requireElicitableError(server, answer, capabilities);
  const isFailed = "error" in answer || answer.result["isError"] === true;
  if (isFailed && lacking && lacking.size > 0) throw lackOf(lacking, answer);
  if ("result" in answer) return answer.result;
  const { code, message, data } = answer.error;
  throw new RpcError(code, message, data);
}

/**
 * Returns the error for missing capabilities. Servers of earlier revisions report them only as a failed call, in their
 * own words.
 */
function lackOf(lacking: ReadonlySet<string>, answer: ToolAnswer): RpcError {
  const requiredCapabilities = Object.fromEntries([...lacking].map((name) => [name, {}]));
  const what = `The server asked for what this client does not say that it can: ${[...lacking].join(", ")}.`;
  const said = "error" in answer ? answer.error.message : textIn(answer.result);
  return new RpcError(missingCapability, `${what} It said: ${said.slice(0, maxSaidLength)}`, { requiredCapabilities });
}

function textIn({ content }: JsonObject): string {
  const blocks: unknown[] = Array.isArray(content) ? content : [];
  return blocks
    .flatMap((block) => (isObject(block) && block["type"] === "text" ? String(block["text"]) : []))
    .join("\n");
}

// Asks a server, and answers what it asks back meanwhile: by its client, or by a model of the gateway where that cannot.
import { GatewayError } from "../../base/errors.ts";
import type { JsonObject, ToolAnswer, ToolExchange, ToolLink } from "../../domain/tools/tool-link.ts";
import type { ToolSampler } from "../../domain/tools/tool-use.ts";
import type { ClientCall } from "./client-call.ts";
import { methodNotFound, RpcError } from "./rpc-error.ts";
import { isObject } from "./server-lists.ts";
import { withoutTasksExtension } from "./tasks.ts";

/** A server that asks again and again is left. */
const mostRounds = 8;

/** The result, which asks in its turn where the client of a later revision is to answer. Rejects with the error of the server. */
export async function askServer(
  link: ToolLink,
  method: string,
  params: JsonObject,
  call: ClientCall,
  sampler: ToolSampler,
): Promise<JsonObject> {
  const exchange = exchangeOf(call, progressTokenOf(params), sampler);
  let asked = params;
  for (let round = 0; round < mostRounds; round++) {
    const result = resultOf(await link.request(method, asked, exchange));
    const { resultType, inputRequests, requestState } = result;
    if (resultType !== "input_required" || !isObject(inputRequests)) return result;
    if (!call.isAskable && !Object.values(inputRequests).every((one) => isOurs(one, call))) return result;
    const inputResponses: Record<string, JsonObject> = {};
    for (const [key, one] of Object.entries(inputRequests)) {
      if (!isObject(one)) continue;
      const wanted = isObject(one["params"]) ? one["params"] : {};
      inputResponses[key] = await answerAsked(String(one["method"]), wanted, call, sampler);
    }
    asked = { ...params, inputResponses, ...(requestState !== undefined && { requestState }) };
  }
  throw new GatewayError("upstream_error", `The server asked back more than ${mostRounds} times.`);
}

function exchangeOf(call: ClientCall, progressToken: unknown, sampler: ToolSampler): ToolExchange {
  const { holder, cancellation, capabilities, headers } = call;
  const samples = call.principal.scopes.has("chat:write") ? { sampling: {} } : {};
  return {
    ...{ holder, cancellation, headers },
    // Tasks of earlier revisions are others.
    clientCapabilities: { ...samples, ...(call.isAskable ? withoutTasksExtension(capabilities) : capabilities) },
    notified: (method, params) => {
      if (method !== "notifications/progress") call.notify(method, params);
      else if (progressToken !== undefined) call.notify(method, { ...params, progressToken });
    },
    asked: (method, params) => answerAsked(method, params, call, sampler),
  };
}

async function answerAsked(
  method: string,
  params: JsonObject,
  call: ClientCall,
  sampler: ToolSampler,
): Promise<JsonObject> {
  if (isOurs({ method }, call)) return await sampler.sample(call.principal, params, call.cancellation.signal);
  const needed = neededCapability(method);
  if (needed === undefined || call.capabilities[needed] === undefined) {
    throw new RpcError(methodNotFound, `The client has no ${needed ?? "such"} capability.`);
  }
  return await call.ask(method, params);
}

/** Whether the gateway answers it in the place of a client that cannot: by one of its own models. */
function isOurs(asked: unknown, { capabilities }: ClientCall): boolean {
  return isObject(asked) && asked["method"] === "sampling/createMessage" && capabilities["sampling"] === undefined;
}

function neededCapability(method: string): string | undefined {
  if (method === "sampling/createMessage") return "sampling";
  if (method === "elicitation/create") return "elicitation";
  return method === "roots/list" ? "roots" : undefined;
}

function progressTokenOf({ _meta }: JsonObject): unknown {
  return isObject(_meta) ? _meta["progressToken"] : undefined;
}

function resultOf(answer: ToolAnswer): JsonObject {
  if ("result" in answer) return answer.result;
  const { code, message, data } = answer.error;
  throw new RpcError(code, message, data);
}

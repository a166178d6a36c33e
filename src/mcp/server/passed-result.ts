// Rewrites a server's result for clients. At the endpoint of all servers, resource URIs and task ids get the server's
// name, to find the server again.

import type { JsonObject } from "../../domain/tools/client-session.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { ClientCall } from "./client-call.ts";
import { publicUri } from "./names.ts";
import { isObject } from "./server-lists.ts";
import { relatedTask } from "./tasks.ts";

export function passedResult(
  result: JsonObject,
  server: McpServer,
  call: Pick<ClientCall, "only" | "isAskable">,
): JsonObject {
  const { only, isAskable } = call;
  const { resultType, ttlMs: _, cacheScope: __, ...plain } = result;
  // Clients of earlier protocol revisions do not know `resultType`, `ttlMs` and `cacheScope`.
  const adapted = isAskable && resultType !== "input_required" ? plain : result;
  if (only !== undefined) return adapted;
  const { name } = server;
  const { content, contents, messages, taskId, task, result: ofTask, _meta } = adapted;
  const publicTask = (one: JsonObject) => ({ ...one, taskId: publicTaskId(name, String(one["taskId"])) });
  const related = isObject(_meta) ? _meta[relatedTask] : undefined;
  return {
    ...adapted,
    ...(Array.isArray(content) && { content: content.map((block) => withPublicUri(block, name)) }),
    ...(Array.isArray(contents) && { contents: contents.map((one) => publicResource(one, name)) }),
    ...(Array.isArray(messages) && { messages: messages.map((one) => withPublicMessage(one, name)) }),
    ...(typeof taskId === "string" && { taskId: publicTaskId(name, taskId) }),
    ...(typeof taskId === "string" && isObject(ofTask) && { result: passedResult(ofTask, server, call) }),
    ...(isObject(task) && typeof task["taskId"] === "string" && { task: publicTask(task) }),
    ...(isObject(related) && { _meta: { ...(isObject(_meta) && _meta), [relatedTask]: publicTask(related) } }),
  };
}

function withPublicMessage(message: unknown, server: string): unknown {
  return isObject(message) ? { ...message, content: withPublicUri(message["content"], server) } : message;
}

function withPublicUri(block: unknown, server: string): unknown {
  if (!isObject(block)) return block;
  if (block["type"] === "resource_link") return publicResource(block, server);
  return block["type"] === "resource" ? { ...block, resource: publicResource(block["resource"], server) } : block;
}

function publicResource(resource: unknown, server: string): unknown {
  if (!isObject(resource) || typeof resource["uri"] !== "string") return resource;
  return { ...resource, uri: publicUri(server, resource["uri"]) };
}

function publicTaskId(server: string, id: string): string {
  return `${server}.${id}`;
}

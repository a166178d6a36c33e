// Asks the endpoint of tools as any client of the protocol could: in its revision without sessions, where a request is one of its own.
import { ApiFailure, send } from "./client.ts";
import { readEvents } from "./event-stream.ts";

const revision = "2026-07-28";
const own = "io.modelcontextprotocol";
/** Pages of one list: a server that goes on for ever is not followed. */
const maxPages = 20;

export type JsonObject = Readonly<Record<string, unknown>>;

/** What is listed, as its server describes it: of others, so nothing of it is taken for granted. */
export interface Listed {
  name: string;
  title?: unknown;
  description?: unknown;
  inputSchema?: unknown;
  outputSchema?: unknown;
  annotations?: unknown;
  uri?: unknown;
}

/** All that somebody may use. */
export interface Offer {
  tools: readonly Listed[];
  prompts: readonly Listed[];
  resources: readonly Listed[];
}

export interface ToolResult {
  content: readonly JsonObject[];
  structured: unknown;
  /** Whether the tool says of it that it failed. */
  isError: boolean;
}

/** With all schemas, also where there are so many that other clients search among them. */
export const toolsPath = "/mcp?tools=all";

/** Lists are asked for at once, and only those that there are; `path`: of one server alone, which lists them anew. */
export async function readOffer(signal: AbortSignal, path = toolsPath): Promise<Offer> {
  const { capabilities } = await ask("server/discover", {}, { signal, path });
  const has = (kind: string) => isObject(capabilities) && isObject(capabilities[kind]);
  const [tools, prompts, resources] = await Promise.all(
    ["tools", "prompts", "resources"].map((kind) => (has(kind) ? listed(kind, signal, path) : [])),
  );
  return { tools: tools ?? [], prompts: prompts ?? [], resources: resources ?? [] };
}

async function listed(kind: string, signal: AbortSignal, path: string): Promise<Listed[]> {
  const items: Listed[] = [];
  let cursor: unknown;
  for (let page = 0; page < maxPages; page++) {
    const result = await ask(`${kind}/list`, cursor === undefined ? {} : { cursor }, { signal, path });
    const found = result[kind];
    if (Array.isArray(found)) items.push(...found.filter(isListed));
    cursor = result["nextCursor"];
    if (typeof cursor !== "string") break;
  }
  return items;
}

/** Names of servers have no underscore, so the first one separates. */
export function serverOf(name: string): string {
  return name.split("_", 1)[0] ?? name;
}

/** The name without that of its server. */
export function ownName(name: string): string {
  return name.slice(serverOf(name).length + 1) || name;
}

/** Whether clients may know it by another name than its server: one that was cut or changed ends with a piece of a hash. */
export function isCut(name: string): boolean {
  return /_[0-9a-f]{6}$/.test(name);
}

/** `name`: as it was listed. */
export async function callTool(name: string, given: JsonObject, signal: AbortSignal): Promise<ToolResult> {
  const result = await ask("tools/call", { name, arguments: given }, { name, signal });
  if (result["resultType"] === "input_required") {
    throw new ApiFailure({
      status: 0,
      code: "input_required",
      message:
        "The tool asks a question before it continues, and this page cannot answer it. Call the tool from a client that supports elicitation.",
    });
  }
  const { content, structuredContent: structured, isError } = result;
  return { content: Array.isArray(content) ? content.filter(isObject) : [], structured, isError: isError === true };
}

/** Rejects with ApiFailure, also for what the protocol has for an error. */
async function ask(
  method: string,
  params: JsonObject,
  { name, signal, path = toolsPath }: { name?: string; signal: AbortSignal; path?: string },
): Promise<JsonObject> {
  const response = await send("POST", path, {
    body: { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: envelope } },
    headers: {
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": revision,
      "mcp-method": method,
      ...(name === undefined ? {} : { "mcp-name": name }),
      // The server keeps lists for a minute. A later page belongs to the list that its first page began.
      ...(path !== toolsPath && !("cursor" in params) ? { "cache-control": "no-cache" } : {}),
    },
    signal,
  });
  const answer = await answerOf(response).catch((error: unknown) => {
    if (signal.aborted) throw error;
  });
  if (isObject(answer) && isObject(answer["result"])) return answer["result"];
  const error = isObject(answer) && isObject(answer["error"]) ? answer["error"] : {};
  const { message = unreadable } = error;
  throw new ApiFailure({ status: response.status, code: "tool_error", message: String(message).slice(0, maxOfError) });
}

/** Characters that are shown of what a server says of an error. */
const maxOfError = 2_000;
const unreadable =
  "The answer was cut off, is too large for this page, or does not follow MCP. Try again, or find the call in Logs.";

const envelope = {
  [`${own}/protocolVersion`]: revision,
  [`${own}/clientInfo`]: { name: "headrace-dashboard", version: "1" },
  // Nothing is answered here that a tool would ask back.
  [`${own}/clientCapabilities`]: {},
};

/** Whole, or as the last of events, where the tool told how it goes on before. */
async function answerOf(response: Response): Promise<unknown> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (!isStream || !response.body) return await response.json();
  for await (const data of readEvents(response.body)) {
    if (data === "") continue;
    const message: unknown = JSON.parse(data);
    if (isObject(message) && ("result" in message || "error" in message)) return message;
  }
  return undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isListed(value: unknown): value is Listed {
  return isObject(value) && typeof value["name"] === "string";
}

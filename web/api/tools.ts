// Calls the MCP endpoint as any client could, in the protocol revision without sessions, where each request stands
// alone.
import { ApiFailure, send } from "./client.ts";
import { readEvents } from "./event-stream.ts";

const revision = "2026-07-28";
const own = "io.modelcontextprotocol";
/** Maximum number of pages that are loaded of one list, because a faulty server could send pages without end. */
const maxPages = 20;

export type JsonObject = Readonly<Record<string, unknown>>;

/** A listed item as its MCP server describes it; its fields are untrusted. */
export interface Listed {
  name: string;
  title?: unknown;
  description?: unknown;
  inputSchema?: unknown;
  outputSchema?: unknown;
  annotations?: unknown;
  uri?: unknown;
}

/** All tools, prompts and resources that the user may use. */
export interface Offer {
  tools: readonly Listed[];
  prompts: readonly Listed[];
  resources: readonly Listed[];
}

export interface ToolResult {
  content: readonly JsonObject[];
  structured: unknown;
  /** True if the tool itself reports a failure. */
  isError: boolean;
}

/** `tools=all` lists every tool with its schema, even if there are so many that other clients get a search tool. */
export const toolsPath = "/mcp?tools=all";

/** Loads the supported lists in parallel. If `path` names one MCP server, the gateway asks that server anew. */
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

/** Returns the part before the first underscore, because names of MCP servers contain no underscore. */
export function serverOf(name: string): string {
  return name.split("_", 1)[0] ?? name;
}

/** Returns a tool's name without its server's prefix. */
export function ownName(name: string): string {
  return name.slice(serverOf(name).length + 1) || name;
}

/** Reports whether a tool's public name may have been cut or changed; such a name ends with a piece of a hash. */
export function isCut(name: string): boolean {
  return /_[0-9a-f]{6}$/.test(name);
}

/** Calls a tool by its name in the list. */
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

/** Rejects with ApiFailure, also for JSON-RPC errors. */
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
      // The gateway caches lists for a minute; `no-cache` skips that. Later pages must come from the first page's list.
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

/** Maximum number of characters shown of a server's error text. */
const maxOfError = 2_000;
const unreadable =
  "The answer was cut off, is too large for this page, or does not follow MCP. Try again, or find the call in Logs.";

const envelope = {
  [`${own}/protocolVersion`]: revision,
  [`${own}/clientInfo`]: { name: "headrace-dashboard", version: "1" },
  // The page declares no client capabilities, because it answers no server requests such as elicitation.
  [`${own}/clientCapabilities`]: {},
};

/** Returns the JSON body, or the event with the result or error if the tool sent progress events before. */
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

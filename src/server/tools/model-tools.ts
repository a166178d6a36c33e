// Lists and calls MCP tools for models, like a client of the MCP endpoint.
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import { trimSlashes } from "../../base/text/http-url.ts";
import type { Principal } from "../../domain/principal.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import type { McpServer, McpServers } from "../../domain/tools/mcp-server.ts";
import type { ToolUses } from "../../domain/tools/tool-use.ts";
import { mayUseServer } from "../../domain/tools/usable-server.ts";
import type { AskedServer, CallResult, HostedTool, ModelTools, ToolAsker } from "../../inference/hosted/model-tools.ts";
import { accountToolName } from "../../mcp/server/account-tool.ts";
import type { ClientCall } from "../../mcp/server/client-call.ts";
import type { RequestHandler } from "../../mcp/server/request-handler.ts";
import { errorTable } from "../../wire/errors.ts";

/** JSON-RPC 2.0, 5.1. */
const internalError = -32_603;

export interface HandlerToolsOptions {
  servers: Pick<McpServers, "all" | "find">;
  uses: Pick<ToolUses, "permit">;
  /** Loads the handler with the first request that needs it. */
  handler(): Promise<RequestHandler>;
  /** Returns the public URL without a trailing slash. */
  installationUrl(): string;
}

export class HandlerTools implements ModelTools {
  readonly #options: HandlerToolsOptions;

  constructor(options: HandlerToolsOptions) {
    this.#options = options;
  }

  serverOf(principal: Principal, { label, url }: Pick<AskedServer, "label" | "url">): string | undefined {
    const { servers } = this.#options;
    const server = url === undefined ? servers.find(label) : servers.all().find((one) => this.#isAt(one, url));
    return server && mayUseServer(server, principal) ? server.name : undefined;
  }

  async list(server: string, asker: ToolAsker): Promise<readonly HostedTool[]> {
    const tools: HostedTool[] = [];
    let cursor: unknown;
    do {
      const page = await this.#ask("tools/list", cursor === undefined ? {} : { cursor }, server, asker).catch(
        listFault,
      );
      if (Array.isArray(page["tools"])) tools.push(...page["tools"].map(hostedTool));
      cursor = page["nextCursor"];
    } while (cursor !== undefined);
    return tools;
  }

  holds(listed: readonly HostedTool[]): boolean {
    // A list with the tool for connecting an account does not stay valid, because the person may have connected the
    // account meanwhile.
    return !listed.some(({ name }) => name === accountToolName);
  }

  async permit(
    server: string,
    name: string,
    { principal, trace }: Pick<ToolAsker, "principal" | "trace">,
  ): Promise<void> {
    const found = this.#options.servers.find(server);
    const asked = { requestId: `req_${Bun.randomUUIDv7()}`, principal, method: "tools/call", name, trace };
    await this.#options.uses.permit({ ...asked, ...(found && { server: found }) });
  }

  async call(server: string, tool: string, args: JsonObject, asker: ToolAsker): Promise<CallResult> {
    try {
      return resultOf(await this.#ask("tools/call", { name: tool, arguments: args }, server, asker));
    } catch (error) {
      if (asker.clientGone.cancelled) throw asker.clientGone.reason;
      return faultOf(error);
    }
  }

  #isAt({ name, place }: McpServer, url: string): boolean {
    const asked = trimSlashes(url);
    if (asked === `${this.#options.installationUrl()}/mcp/${name}`) return true;
    return place.kind === "http" && trimSlashes(place.url) === asked;
  }

  async #ask(
    method: string,
    params: JsonObject,
    only: string,
    { principal, memoryAccount, clientGone, trace }: ToolAsker,
  ): Promise<JsonObject> {
    const cancellation = new Cancellation();
    const leave = () => cancellation.cancel(clientGone.reason);
    clientGone.onCancel(leave);
    const call: ClientCall = {
      ...{ principal, memoryAccount, clientGone, cancellation, only, listing: "all", trace },
      requestId: `req_${Bun.randomUUIDv7()}`,
      // The call cannot show forms, because no person is present. Sampling uses a model of the gateway.
      capabilities: {},
      isAskable: true,
      notify() {},
      ask: () => Promise.reject(new GatewayError("invalid_request", "Within a call of a model nobody can be asked.")),
    };
    try {
      return await (await this.#options.handler()).result(method, params, call);
    } finally {
      clientGone.off(leave);
    }
  }
}

/** Throws the error of a request whose tools cannot be listed. No model is asked then. */
function listFault(error: unknown): never {
  if (error instanceof GatewayError) throw error;
  const { message } = error as Error;
  throw new GatewayError("upstream_error", "The MCP server did not say what it has.", { detail: message });
}

function hostedTool(tool: JsonObject): HostedTool {
  const { name, description, inputSchema, annotations } = tool;
  const hints = (annotations ?? {}) as JsonObject;
  return {
    name: String(name),
    description: typeof description === "string" ? description : undefined,
    inputSchema: (inputSchema ?? { type: "object" }) as JsonObject,
    isReadOnly: hints["readOnlyHint"] === true,
  };
}

/** An image as text would fill the context of a model that cannot see it. */
function withoutBytes(name: string, value: unknown): unknown {
  const isBytes = (name === "data" || name === "blob") && typeof value === "string";
  return isBytes ? `(${value.length} characters of base64, left out)` : value;
}

/** Content other than text is passed as JSON, because the model reads only text here. */
function resultOf({ content, structuredContent, isError }: JsonObject): CallResult {
  const given: readonly JsonObject[] = Array.isArray(content) ? content : [];
  // If the call failed, the blocks are also stored in the response, and are part of later responses that continue it.
  const blocks = given.map(
    (block): JsonObject => (isText(block) ? block : JSON.parse(JSON.stringify(block, withoutBytes))),
  );
  const texts = blocks.map((block) => (isText(block) ? String(block["text"]) : JSON.stringify(block)));
  const output = texts.length > 0 ? texts.join("\n") : JSON.stringify(structuredContent ?? {});
  return { output, error: isError === true ? { type: "mcp_tool_execution_error", content: blocks } : undefined };
}

function isText({ type }: JsonObject): boolean {
  return type === "text";
}

function faultOf(error: unknown): CallResult {
  const { message, code } = error as { message: string; code?: number };
  if (error instanceof GatewayError) {
    return { output: message, error: { type: "http_error", code: errorTable[error.code].status, message } };
  }
  return { output: message, error: { type: "mcp_protocol_error", code: code ?? internalError, message } };
}

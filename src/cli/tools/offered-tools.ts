// The tools that a key or login may use, listed as any MCP client would.
import { Client, type FetchLike, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { failure, parseJson, send } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";

export interface OfferedTool {
  name: string;
  description?: string | undefined;
}

/** The protocol revision whose requests need no session. */
const revision = "2026-07-28";
const path = "/mcp?tools=all";
/** Maximum number of pages, in case a server's list never ends. */
const maxPages = 50;
const timeoutMs = 60_000;

/**
 * Lists all tools. Asks for the whole list, because a long one is otherwise replaced by a search tool. Rejects with an
 * ApiError or CliError.
 */
export async function listOffered(connection: Connection, signal: AbortSignal): Promise<OfferedTool[]> {
  const root = connection.baseUrl.replace(/\/v1$/, "");
  // Keeps the server's own error message, which is better than that of the MCP package.
  let refused: unknown;
  const fetchAs: FetchLike = async (_, init) => {
    try {
      return await answerOf({ ...connection, baseUrl: root }, signal, init);
    } catch (error) {
      refused ??= error;
      throw error;
    }
  };
  const client = new Client({ name: "headrace", version: "1" }, { versionNegotiation: { mode: { pin: revision } } });
  const options = { signal, timeout: timeoutMs };
  try {
    await client.connect(new StreamableHTTPClientTransport(new URL(root + path), { fetch: fetchAs }), options);
    const tools: OfferedTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < maxPages; page++) {
      const listed = await client.listTools(cursor === undefined ? {} : { cursor }, options);
      tools.push(...listed.tools);
      cursor = listed.nextCursor;
      if (cursor === undefined) break;
    }
    return tools;
  } catch (error) {
    signal.throwIfAborted();
    throw refused ?? error;
  } finally {
    await client.close();
  }
}

/** Sends a request with the connection's credential, and renews the token of a login if necessary. */
async function answerOf(connection: Connection, signal: AbortSignal, init: RequestInit = {}): Promise<Response> {
  const { accept = "application/json", ...headers } = Object.fromEntries(new Headers(init.headers));
  const body = parseJson(String(init.body));
  const response = await send(connection, path, signal, { method: "POST", body, accept, headers, timeoutMs });
  if (response.ok) return response;
  throw await failure(response, connection, signal);
}

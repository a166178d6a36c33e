// The tools that a key or login may use, listed as any MCP client would.
import { Client, type FetchLike, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { failure, parseJson, send } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";

export interface OfferedTool {
  name: string;
  description?: string | undefined;
}

/** The revision whose requests need no session. */
const revision = "2026-07-28";
const path = "/mcp?tools=all";
/** An endless list is not followed. */
const maxPages = 50;
const timeoutMs = 60_000;

/** All tools, even where there are so many that clients search among them. Rejects like `requestJson`. */
export async function listOffered(connection: Connection, signal: AbortSignal): Promise<OfferedTool[]> {
  const root = connection.baseUrl.replace(/\/v1$/, "");
  // The server's own error message is better than that of the MCP package.
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

/** Uses the connection's credential, which may be renewed during a login. */
async function answerOf(connection: Connection, signal: AbortSignal, init: RequestInit = {}): Promise<Response> {
  const { accept = "application/json", ...headers } = Object.fromEntries(new Headers(init.headers));
  const body = parseJson(String(init.body));
  const response = await send(connection, path, signal, { method: "POST", body, accept, headers, timeoutMs });
  if (response.ok) return response;
  throw await failure(response, connection, signal);
}

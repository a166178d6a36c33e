// The one tool of a server at which its person has no account connected: models, and clients, tell people what their tools say.

import type { AccountMissing, JsonObject } from "../../domain/tools/client-session.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";

/** No server's own is listed beside it. */
export const accountToolName = "connect_account";

export function accountTool({ name, title }: McpServer, { connectAt }: AccountMissing): JsonObject {
  return {
    name: accountToolName,
    title: `Connect your account: ${title ?? name}`,
    description: `The tools of "${name}" act with the user's own account there, which is not connected. Nothing of it can be used before: tell the user to open ${connectAt} and to connect the account of "${name}". Then call this tool.`,
    inputSchema: { type: "object", properties: {} },
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
}

/** Models read the results of tools, and errors of the protocol not in all clients. */
export function missingAnswer({ message }: AccountMissing): JsonObject {
  return { content: [{ type: "text", text: message }], isError: true };
}

export function connectedAnswer({ name }: McpServer): JsonObject {
  return { content: [{ type: "text", text: `The account of "${name}" is connected. List the tools anew to use it.` }] };
}

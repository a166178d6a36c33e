// The tool that replaces the tools of an MCP server while the user has no connected account there. Its text asks the
// user to connect one.

import type { AccountMissing, JsonObject } from "../../domain/tools/client-session.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";

/** Name of the tool. While this tool is listed, the server's own tools are not. */
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

/** Returns a tool result, because not all clients show protocol errors to the model. */
export function missingAnswer({ message }: AccountMissing): JsonObject {
  return { content: [{ type: "text", text: message }], isError: true };
}

export function connectedAnswer({ name }: McpServer): JsonObject {
  return { content: [{ type: "text", text: `The account of "${name}" is connected. List the tools anew to use it.` }] };
}

// Schemas of people's own accounts at MCP servers. No schema contains a token.
import { z } from "zod";
import { unixSeconds } from "../parts.ts";

const serverName = z.string().min(1).max(24).describe("Name of the MCP server.");

export const connectToolsRequest = z.object({ server: serverName }).meta({ id: "ConnectToolsRequest" });

export const toolConnectingShape = z
  .object({
    object: z.literal("tool_connection.begun"),
    server: serverName,
    url: z
      .string()
      .describe("URL to open in the browser. The browser must return within 15 minutes, in the same session."),
  })
  .meta({ id: "ToolConnectionBegun" });

const state = z
  .enum(["none", "connected", "broken", "unused"])
  .describe(
    "`broken`: the connection no longer works until you connect the account again, and `broken_because` says why. `unused`: the server no longer exists or may not be used here, but the grant is kept until you end the connection.",
  );

export const toolConnectionShape = z
  .object({
    object: z.literal("tool_connection"),
    server: serverName,
    title: z.string().nullable(),
    state,
    issuer: z.string().nullable().describe("Authorization server that issued the tokens."),
    scopes: z.array(z.string()).describe("Granted scopes."),
    connected_at: unixSeconds.nullable(),
    last_used_at: unixSeconds.nullable(),
    broken_because: z.string().nullable(),
  })
  .meta({ id: "ToolConnection" });
export type ToolConnectionWire = z.infer<typeof toolConnectionShape>;

export const endedToolConnectionShape = z
  .object({
    object: z.literal("tool_connection.deleted"),
    server: serverName,
    deleted: z.literal(true),
    revoked: z.boolean().describe("True if the authorization server confirmed the revocation of the tokens."),
  })
  .meta({ id: "ToolConnectionDeleted" });

export const connectedPersonShape = z
  .object({
    object: z.literal("tool_connection.person"),
    id: z.string(),
    server: serverName,
    person_id: z.string(),
    account_id: z.string(),
    state: state.exclude(["none", "unused"]),
    connected_at: unixSeconds,
    last_used_at: unixSeconds.nullable(),
  })
  .meta({ id: "ConnectedPerson" });

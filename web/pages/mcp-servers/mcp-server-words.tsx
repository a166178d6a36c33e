// Descriptions of MCP servers: location, identity, tools and prompts.
import type { McpServer, ToolDefinition } from "../../api/types.ts";
import { count, counted } from "../../parts/words/figures.ts";
import { State, type StateKind } from "../../parts/words/state.tsx";

export function ServerState({ server: { enabled, waiting } }: { server: McpServer }) {
  if (!enabled) return <State kind="plain">Switched off</State>;
  return waiting > 0 ? (
    <State kind="waiting">{`${count(waiting)} to approve`}</State>
  ) : (
    <State kind="good">Active</State>
  );
}

/**
 * Returns the location of an MCP server in words: its address, its name at a node, or that it is a program on this
 * machine.
 */
export function locationOf({ place, url, node }: McpServer): string {
  if (node) return `${node.server}, on a node`;
  return place === "command" ? "A program on this machine" : (url ?? "");
}

export const identityNames: Record<McpServer["credentials"], string> = {
  none: "No sign-in",
  headers: "Shared credential",
  person: "Per-user sign-in",
};

export function identityText({ credentials, header_names: names, oauth }: McpServer): string {
  if (credentials === "headers") return `Shared credential (${names.join(", ")})`;
  if (credentials === "none") return "No sign-in";
  return oauth?.client_id ? `Per-user sign-in with the client ${oauth.client_id}` : "Per-user sign-in";
}

export const approvalTexts: Record<McpServer["approval"], string> = {
  first: "First version approved; changes need review",
  each: "Each tool needs approval",
  all: "All changes accepted",
};

const states: Record<ToolDefinition["state"], readonly [StateKind, string]> = {
  approved: ["good", "Approved"],
  pending: ["waiting", "New"],
  changed: ["warning", "Changed"],
  refused: ["bad", "Refused"],
};

export function DefinitionState({ state }: Pick<ToolDefinition, "state">) {
  const [kind, word] = states[state];
  return <State kind={kind}>{word}</State>;
}

/** Returns the title of a definition; a server's instructions to models have no name, so they get a fixed title. */
export function wordsFor({ kind, name }: Pick<ToolDefinition, "kind" | "name">): string {
  if (kind === "instructions") return "Server instructions";
  return kind === "prompt" ? `${name}, a prompt` : name;
}

/** Returns the number of pending definitions, such as "2 tools and prompts". */
export function waitingText(amount: number): string {
  return counted(amount, "tool or prompt", "tools and prompts");
}

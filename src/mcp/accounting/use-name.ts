// Decides which calls to MCP servers are recorded in the ledger, and under which name.
import type { ToolUse } from "../../domain/tools/tool-use.ts";

/** Maximum length of a name. Longer names are cut, because reports use them as labels. */
const maxNameLength = 128;

/**
 * For each recorded method, the prefix of the reported name. The prefix of `tools/call` is empty, so that a tool has
 * the same name as in allow lists. null: no name is reported, because a resource's URI can be anything. Methods that
 * are missing here, such as lists, are not recorded.
 */
const prefixes: Readonly<Record<string, string | null>> = {
  "tools/call": "",
  "prompts/get": "prompts/get/",
  "resources/read": null,
};

export function isBooked(method: string): boolean {
  return Object.hasOwn(prefixes, method);
}

/** Returns the reported name of the tool or prompt; null if there is none. */
export function shownName({ method, name }: Pick<ToolUse, "method" | "name">): string | null {
  if (name === null || typeof prefixes[method] !== "string") return null;
  const whole = name.length <= maxNameLength ? name : `${name.slice(0, maxNameLength - 1)}…`;
  // Invisible characters, and those that change the text direction, could make one tool look like another.
  return whole.toWellFormed().replace(/\p{C}/gu, "\ufffd");
}

/**
 * Returns the name that usage records have in place of a model id: `github/search`, `github/prompts/get/review`,
 * `github/resources/read`.
 */
export function bookedName(use: Pick<ToolUse, "server" | "method" | "name">): string {
  const name = shownName(use);
  return `${use.server.name}/${name === null ? use.method : `${prefixes[use.method] ?? ""}${name}`}`;
}

// Decides which calls of MCP servers the ledger records, and their names in usage and limits.
import type { ToolUse } from "../../domain/tools/tool-use.ts";

/** Maximum length of a name. Reports use names as labels, so longer names are cut. */
const maxNameLength = 128;

/**
 * Name prefixes of recorded methods. Lists, completion and task polls are not recorded. `tools/call` has no prefix, so
 * that a tool is named as in allow lists. Resource addresses can be anything and are not reported.
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

/** Returns the name in place of a model's id: `github/search`, `github/prompts/get/review`, `github/resources/read`. */
export function bookedName(use: Pick<ToolUse, "server" | "method" | "name">): string {
  const name = shownName(use);
  return `${use.server.name}/${name === null ? use.method : `${prefixes[use.method] ?? ""}${name}`}`;
}

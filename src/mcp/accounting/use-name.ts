// The calls of MCP servers that the ledger records, and their names in usage and limits.
import type { ToolUse } from "../../domain/tools/tool-use.ts";

/** Longer ones are cut: they are labels of reports. */
const maxNameLength = 128;

/**
 * What a server works for. Lists, completion while somebody types, and polls of what is booked already are not among it.
 * `tools/call` needs no prefix, so that a tool is named as in allow lists; addresses of resources may be any, and are not told.
 */
const prefixes: Readonly<Record<string, string | null>> = {
  "tools/call": "",
  "prompts/get": "prompts/get/",
  "resources/read": null,
};

export function isBooked(method: string): boolean {
  return Object.hasOwn(prefixes, method);
}

/** The tool or prompt as it is told; null where there is none to tell. */
export function toldName({ method, name }: Pick<ToolUse, "method" | "name">): string | null {
  if (name === null || typeof prefixes[method] !== "string") return null;
  const whole = name.length <= maxNameLength ? name : `${name.slice(0, maxNameLength - 1)}…`;
  // What cannot be seen, or turns the direction of what follows, would make one tool look like another.
  return whole.toWellFormed().replace(/\p{C}/gu, "\ufffd");
}

/** In the place of a model's id: `github/search`, `github/prompts/get/review`, `github/resources/read`. */
export function bookedName(use: Pick<ToolUse, "server" | "method" | "name">): string {
  const name = toldName(use);
  return `${use.server.name}/${name === null ? use.method : `${prefixes[use.method] ?? ""}${name}`}`;
}

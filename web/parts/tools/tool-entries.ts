// Lists of tools as users type them: valid entries, suggestions, and lists in words.
import { useOffer } from "../../api/offer.ts";
import { useRead } from "../../api/queries.ts";
import { isCut, ownName, serverOf } from "../../api/tools.ts";
import type { McpServerList } from "../../api/types.ts";

/** null means all offered tools; empty means none. */
export type ToolList = readonly string[] | null;

/** The server's syntax, so that errors are shown before sending. */
const entryPattern = /^(?:[a-z0-9][a-z0-9-]*\*?|\*)(?:\/(?:[^\s*]+\*?|\*))?$/;

/** Returns the error of a list, or undefined. */
export function toolListError(tools: ToolList): string | undefined {
  const strange = tools?.find((entry) => entry.length > 281 || !entryPattern.test(entry));
  if (strange === undefined) return undefined;
  return `${strange} is not the name of a server, such as crm, or of a tool, such as crm/search or crm/read_*.`;
}

/** Returns suggestions: the user's own tools, or the servers of the installation. Loads nothing while not `enabled`. */
export function useToolEntries(of: "own" | "installation", enabled: boolean): string[] {
  const offer = useOffer({ enabled: enabled && of === "own" });
  const servers = useRead<McpServerList>("/v1/admin/tool-servers", {}, { enabled: enabled && of === "installation" });
  const names = servers.data?.data.map(({ name }) => name) ?? [];
  const tools = offer.data?.tools ?? [];
  // A tool whose public name was cut or changed is left out, because its own name is unknown.
  const entries = tools.flatMap(({ name }) => (isCut(name) ? [] : [`${serverOf(name)}/${ownName(name)}`]));
  return [...new Set([...names, ...tools.map(({ name }) => serverOf(name))])].sort().concat(entries.sort());
}

export function toolListWords(tools: ToolList): string {
  if (tools === null) return "All available tools";
  return tools.length === 0 ? "None" : `Only ${tools.join(", ")}`;
}

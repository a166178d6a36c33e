// Lists of tools as people write them: what an entry may be, what is suggested, and how a list is told.
import { useOffer } from "../../api/offer.ts";
import { useRead } from "../../api/queries.ts";
import { isCut, ownName, serverOf } from "../../api/tools.ts";
import type { McpServerList } from "../../api/types.ts";

/** null: all that are offered; empty: none. */
export type ToolList = readonly string[] | null;

/** The form that the server takes, so that what is wrong is said before it is sent. */
const entryPattern = /^(?:[a-z0-9][a-z0-9-]*\*?|\*)(?:\/(?:[^\s*]+\*?|\*))?$/;

/** What is wrong with a list, or undefined. */
export function toolListError(tools: ToolList): string | undefined {
  const strange = tools?.find((entry) => entry.length > 281 || !entryPattern.test(entry));
  if (strange === undefined) return undefined;
  return `${strange} is not the name of a server, such as crm, or of a tool, such as crm/search or crm/read_*.`;
}

/** `of`: what one may use oneself, or all servers of the installation. Asked for once somebody writes a list. */
export function useToolEntries(of: "own" | "installation", enabled: boolean): string[] {
  const offer = useOffer({ enabled: enabled && of === "own" });
  const servers = useRead<McpServerList>("/v1/admin/tool-servers", {}, { enabled: enabled && of === "installation" });
  const names = servers.data?.data.map(({ name }) => name) ?? [];
  const tools = offer.data?.tools ?? [];
  // Where clients know one by another name than its server does, the server's own is not told.
  const entries = tools.flatMap(({ name }) => (isCut(name) ? [] : [`${serverOf(name)}/${ownName(name)}`]));
  return [...new Set([...names, ...tools.map(({ name }) => serverOf(name))])].sort().concat(entries.sort());
}

export function toolListWords(tools: ToolList): string {
  if (tools === null) return "All available tools";
  return tools.length === 0 ? "None" : `Only ${tools.join(", ")}`;
}

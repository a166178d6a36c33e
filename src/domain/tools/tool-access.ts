// Which servers and tools the keys, people, apps and account of a principal may use.

import { commonPatterns, coversPattern } from "../models/model-patterns.ts";

/**
 * Entries are `server`, which means all of its tools, or `server/tool`, both of which may end with an asterisk. Each list has to
 * have what is used; an empty one has nothing.
 */
export interface ToolAccess {
  readonly lists: readonly (readonly string[])[];
}

export const maxToolEntryLength = 281;
export const maxToolEntries = 100;
export const toolEntryPattern = /^(?:[a-z0-9][a-z0-9-]*\*?|\*)(?:\/(?:[^\s*]+\*?|\*))?$/;

/** `reach`: undefined where nothing bounds it. */
export function reachesTool(reach: ToolAccess | undefined, server: string, tool: string): boolean {
  return reach === undefined || reach.lists.every((list) => list.some((entry) => hasTool(entry, server, tool)));
}

/** Whether anything of the server may be used. */
export function reachesServer(reach: ToolAccess | undefined, server: string): boolean {
  return reach === undefined || reach.lists.every((list) => list.some((entry) => matches(partsOf(entry)[0], server)));
}

/** Whether all of the server may be used, whatever it has. */
export function reachesAllOf(reach: ToolAccess | undefined, server: string): boolean {
  return reach === undefined || reach.lists.every((list) => list.some((entry) => coversTools(entry, server)));
}

/** Whether whatever the inner entry names is named by the outer one as well. */
export function coversTools(outer: string, inner: string): boolean {
  const [servers, tools] = partsOf(outer);
  const [innerServers, innerTools] = partsOf(inner);
  return coversPattern(servers, innerServers) && coversPattern(tools, innerTools);
}

/** What both lists name. */
export function commonTools(some: readonly string[], others: readonly string[]): string[] {
  const common = some.flatMap((a) =>
    others.flatMap((b) => {
      const [servers, tools] = partsOf(a);
      const [otherServers, otherTools] = partsOf(b);
      return commonPatterns([servers], [otherServers]).flatMap((server) =>
        commonPatterns([tools], [otherTools]).map((tool) => (tool === "*" ? server : `${server}/${tool}`)),
      );
    }),
  );
  return [...new Set(common)];
}

/** What any of the lists names, in order, without what another entry names as well; null where one is all, or there is none. */
export function eitherTools(lists: readonly (readonly string[] | null)[]): string[] | null {
  if (lists.length === 0 || lists.includes(null)) return null;
  const entries = [...new Set(lists.flatMap((list) => list ?? []))];
  return entries.filter((entry) => !entries.some((other) => other !== entry && coversTools(other, entry))).sort();
}

/** Patterns of the server and of its tools. */
function partsOf(entry: string): [servers: string, tools: string] {
  const slash = entry.indexOf("/");
  return slash < 0 ? [entry, "*"] : [entry.slice(0, slash), entry.slice(slash + 1)];
}

function hasTool(entry: string, server: string, tool: string): boolean {
  const [servers, tools] = partsOf(entry);
  return matches(servers, server) && matches(tools, tool);
}

/** `pattern`: a name, or its beginning with an asterisk. */
function matches(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

// Decides which MCP servers and tools the keys, person, app and account of a principal may use.

import { commonPatterns, coversPattern } from "../models/model-patterns.ts";

/**
 * Lists of allowed tools. An entry is `server` (all of its tools) or `server/tool`, and each part may end in `*`. A
 * tool must be allowed by every list. An empty list allows none.
 */
export interface ToolAccess {
  readonly lists: readonly (readonly string[])[];
}

export const maxToolEntryLength = 281;
export const maxToolEntries = 100;
export const toolEntryPattern = /^(?:[a-z0-9][a-z0-9-]*\*?|\*)(?:\/(?:[^\s*]+\*?|\*))?$/;

/** Reports whether the tool may be used. `access` is undefined if there is no restriction. */
export function allowsTool(access: ToolAccess | undefined, server: string, tool: string): boolean {
  return access === undefined || access.lists.every((list) => list.some((entry) => hasTool(entry, server, tool)));
}

/** Reports whether at least one tool of the server may be used. */
export function allowsServer(access: ToolAccess | undefined, server: string): boolean {
  return access === undefined || access.lists.every((list) => list.some((entry) => matches(partsOf(entry)[0], server)));
}

/** Reports whether all tools of the server may be used, even tools that the server may add later. */
export function allowsAllOf(access: ToolAccess | undefined, server: string): boolean {
  return access === undefined || access.lists.every((list) => list.some((entry) => coversTools(entry, server)));
}

/** Reports whether every tool that the entry `inner` allows is also allowed by `outer`. */
export function coversTools(outer: string, inner: string): boolean {
  const [servers, tools] = partsOf(outer);
  const [innerServers, innerTools] = partsOf(inner);
  return coversPattern(servers, innerServers) && coversPattern(tools, innerTools);
}

/** Returns entries that allow exactly the tools that both lists allow. */
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

/**
 * Returns the entries of all lists, sorted and without redundant ones. Returns null, which allows everything, if a list
 * is null or there are no lists.
 */
export function eitherTools(lists: readonly (readonly string[] | null)[]): string[] | null {
  if (lists.length === 0 || lists.includes(null)) return null;
  const entries = [...new Set(lists.flatMap((list) => list ?? []))];
  return entries.filter((entry) => !entries.some((other) => other !== entry && coversTools(other, entry))).sort();
}

/** Splits an entry into the pattern of the server's name and that of the tool's name. */
function partsOf(entry: string): [servers: string, tools: string] {
  const slash = entry.indexOf("/");
  return slash < 0 ? [entry, "*"] : [entry.slice(0, slash), entry.slice(slash + 1)];
}

function hasTool(entry: string, server: string, tool: string): boolean {
  const [servers, tools] = partsOf(entry);
  return matches(servers, server) && matches(tools, tool);
}

/** Reports whether a pattern, which is a name or a prefix ending in `*`, matches the name. */
function matches(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

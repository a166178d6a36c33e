// Which servers and tools the keys, people, apps and account of a principal may use.

/**
 * Entries are `server`, which means all of its tools, or `server/tool`, both of which may end with an asterisk. Each list has to
 * have what is used; an empty one has nothing.
 */
export interface ToolReach {
  readonly lists: readonly (readonly string[])[];
}

/** `reach`: undefined where nothing bounds it. */
export function reachesTool(reach: ToolReach | undefined, server: string, tool: string): boolean {
  return reach === undefined || reach.lists.every((list) => list.some((entry) => hasTool(entry, server, tool)));
}

/** Whether anything of the server may be used. */
export function reachesServer(reach: ToolReach | undefined, server: string): boolean {
  return reach === undefined || reach.lists.every((list) => list.some((entry) => matches(serverOf(entry), server)));
}

function hasTool(entry: string, server: string, tool: string): boolean {
  const slash = entry.indexOf("/");
  if (slash < 0) return matches(entry, server);
  return matches(entry.slice(0, slash), server) && matches(entry.slice(slash + 1), tool);
}

function serverOf(entry: string): string {
  const slash = entry.indexOf("/");
  return slash < 0 ? entry : entry.slice(0, slash);
}

/** `pattern`: a name, or its beginning with an asterisk. */
function matches(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

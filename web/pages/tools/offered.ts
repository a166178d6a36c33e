// Groups the tools, prompts and resources that the user may use by MCP server.
import { type Listed, type Offer, serverOf } from "../../api/tools.ts";

export interface OfferOfServer {
  server: string;
  tools: readonly Listed[];
  prompts: readonly Listed[];
  resources: readonly Listed[];
}

/** Returns the servers in the order of their names. */
export function byServer({ tools, prompts, resources }: Offer): OfferOfServer[] {
  const names = new Set([
    ...[...tools, ...prompts].map(({ name }) => serverOf(name)),
    ...resources.map(({ uri }) => serverOfResource(uri)),
  ]);
  return [...names].sort().map((server) => ({
    server,
    tools: tools.filter(({ name }) => serverOf(name) === server),
    prompts: prompts.filter(({ name }) => serverOf(name) === server),
    resources: resources.filter(({ uri }) => serverOfResource(uri) === server),
  }));
}

/** Returns the name of the MCP server from a resource's URI, `headrace+server:…`. */
function serverOfResource(uri: unknown): string {
  return /^headrace\+([a-z0-9-]+):/.exec(String(uri))?.[1] ?? "";
}

/** Reports whether each word of the search occurs in the item's name, title or description. */
export function isFound({ name, title, description }: Listed, search: string): boolean {
  const searchedText = `${name} ${text(title)} ${text(description)}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => searchedText.includes(word));
}

/** Returns the value if it is text, else an empty string. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

// Public names of the tools and prompts of MCP servers. They are short, stable and unique.
import { isSearchTool } from "./tool-search.ts";

/** Maximum length. Model APIs allow 64 characters, and some clients add a prefix (`mcp__gateway__`). */
const maxNameLength = 50;
const hashLength = 6;
const foreign = /[^A-Za-z0-9_-]/g;

/**
 * Returns a public name. If `server` is undefined (the endpoint of a single server), a valid name stays
 * unchanged. A name that is shortened, changed or reserved ends with a part of a hash, so that names stay different.
 */
export function publicName(server: string | undefined, name: string): string {
  const wanted = server === undefined ? name : `${server}_${name}`;
  const plain = wanted.replace(foreign, "_");
  const isTaken = server !== undefined && isSearchTool(wanted);
  if (plain === wanted && plain.length <= maxNameLength && !isTaken) return plain;
  const hash = new Bun.CryptoHasher("sha256").update(wanted).digest("hex").slice(0, hashLength);
  return `${plain.slice(0, maxNameLength - hashLength - 1)}_${hash}`;
}

type Named = Readonly<Record<string, unknown>>;

/** For each list and server: the items by public name. */
const indexes = new WeakMap<readonly Named[], Map<string | undefined, Map<string, Named>>>();

/**
 * Returns the item with this public name; undefined if there is none. `server` is undefined at the endpoint of a single
 * server.
 */
export function itemOf<Item extends Named>(
  items: readonly Item[],
  server: string | undefined,
  name: string,
): Item | undefined {
  const ofList = indexes.get(items) ?? new Map<string | undefined, Map<string, Named>>();
  indexes.set(items, ofList);
  let byName = ofList.get(server) as Map<string, Item> | undefined;
  if (!byName) {
    byName = new Map();
    for (const item of items) {
      const own = item["name"];
      const known = typeof own === "string" ? publicName(server, own) : undefined;
      if (known !== undefined && !byName.has(known)) byName.set(known, item);
    }
    ofList.set(server, byName);
  }
  return byName.get(name);
}

/** Returns the server name in a public name. Server names contain no underscore. */
export function serverOfName(name: string): string {
  const at = name.indexOf("_");
  return at < 0 ? name : name.slice(0, at);
}

/** Maximum characters of a resource URI. Subscribed URIs are stored as long as the session lasts. */
export const maxUriLength = 8_192;

/**
 * Prefix of public resource URIs. The server's name and the unchanged URI follow, because two servers may use the same
 * URI.
 */
const scheme = "headrace+";

export function publicUri(server: string, uri: string): string {
  return `${scheme}${server}:${uri}`;
}

/** Splits a public resource URI; returns undefined for any other text. */
export function partsOfUri(uri: string): { server: string; uri: string } | undefined {
  const colon = uri.indexOf(":");
  if (!uri.startsWith(scheme) || colon < 0) return undefined;
  return { server: uri.slice(scheme.length, colon), uri: uri.slice(colon + 1) };
}

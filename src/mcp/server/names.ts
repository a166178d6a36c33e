// Public names of tools and prompts of MCP servers: short, stable and unique.
import { isSearchTool } from "./tool-search.ts";

/** Model APIs allow 64 characters, and some clients add a prefix of their own (`mcp__gateway__`). */
const maxNameLength = 50;
const hashLength = 6;
const foreign = /[^A-Za-z0-9_-]/g;

/**
 * Returns the public name. If `server` is undefined, the address is that of one server and a valid name stays
 * unchanged. A name that is cut, replaced or reserved ends with a part of a hash, so that different names stay
 * different.
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

/** Items of a list by public name; built once for each list and address. */
const indexes = new WeakMap<readonly Named[], Map<string | undefined, Map<string, Named>>>();

/** Returns the item of a server's list with this public name. `server` is that of `publicName`. */
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

/** Returns the server part of a public name. Server names have no underscore. */
export function serverOfName(name: string): string {
  const at = name.indexOf("_");
  return at < 0 ? name : name.slice(0, at);
}

/** Maximum length of an address in characters. Subscribed addresses are kept as long as the session. */
export const maxUriLength = 8_192;

/**
 * Two servers may have a resource at the same address. The scheme names the server, and the unchanged address follows.
 */
const scheme = "headrace+";

export function publicUri(server: string, uri: string): string {
  return `${scheme}${server}:${uri}`;
}

/** Returns undefined for an address that is not from `publicUri`. */
export function partsOfUri(uri: string): { server: string; uri: string } | undefined {
  const colon = uri.indexOf(":");
  if (!uri.startsWith(scheme) || colon < 0) return undefined;
  return { server: uri.slice(scheme.length, colon), uri: uri.slice(colon + 1) };
}

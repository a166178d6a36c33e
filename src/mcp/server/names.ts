// The names by which clients know tools and prompts of servers: short, stable, and of no two the same.
import { isSearchTool } from "./tool-search.ts";

/** Names of models' APIs have 64, of which clients take some for a prefix of their own (`mcp__gateway__`). */
const maxNameLength = 50;
const hashLength = 6;
const foreign = /[^A-Za-z0-9_-]/g;

/**
 * `server`: where several are behind one address; undefined: it is this one's alone, and a name that fits stays as it is.
 * What is cut, replaced or the gateway's own ends with a piece of a hash, so that names which differ stay different.
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

/** What is in a list, by the names that it is known by; made once for each list and address. */
const indexes = new WeakMap<readonly Named[], Map<string | undefined, Map<string, Named>>>();

/** What of a server's list clients know by a name. `server`: as for `publicName`. */
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

/** The server that a name is of, where several are behind one address: names of servers have no underscore. */
export function serverOfName(name: string): string {
  const at = name.indexOf("_");
  return at < 0 ? name : name.slice(0, at);
}

/** Characters: those that a client subscribes to are kept for as long as its session lasts. */
export const maxUriLength = 8_192;

/** Two servers may have a resource at the same address: it is told apart by its scheme, behind which it stands unchanged. */
const scheme = "headrace+";

export function publicUri(server: string, uri: string): string {
  return `${scheme}${server}:${uri}`;
}

/** Undefined where it is none of `publicUri`. */
export function partsOfUri(uri: string): { server: string; uri: string } | undefined {
  const colon = uri.indexOf(":");
  if (!uri.startsWith(scheme) || colon < 0) return undefined;
  return { server: uri.slice(scheme.length, colon), uri: uri.slice(colon + 1) };
}

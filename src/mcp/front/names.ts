// The names by which clients know tools and prompts of servers: short, stable, and of no two the same.

/** Names of models' APIs have 64, of which clients take some for a prefix of their own (`mcp__gateway__`). */
const longestName = 50;
const hashLength = 6;
const foreign = /[^A-Za-z0-9_-]/g;

/**
 * `server`: where several are behind one address; undefined: it is this one's alone, and a name that fits stays as it is.
 * What is cut or replaced ends with a piece of a hash, so that names which differ stay different.
 */
export function publicName(server: string | undefined, name: string): string {
  const wanted = server === undefined ? name : `${server}_${name}`;
  const plain = wanted.replace(foreign, "_");
  if (plain === wanted && plain.length <= longestName) return plain;
  const hash = new Bun.CryptoHasher("sha256").update(wanted).digest("hex").slice(0, hashLength);
  return `${plain.slice(0, longestName - hashLength - 1)}_${hash}`;
}

/** The server that a name is of, where several are behind one address: names of servers have no underscore. */
export function serverOfName(name: string): string {
  const at = name.indexOf("_");
  return at < 0 ? name : name.slice(0, at);
}

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

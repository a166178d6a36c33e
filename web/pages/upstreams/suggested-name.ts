// Suggests a name for a model server from its address.

/** Returns an unused name in the server's syntax. */
export function suggestedName(url: string, taken: readonly string[]): string {
  const host = URL.canParse(url) ? new URL(url) : undefined;
  const words = host ? `${host.hostname}${host.port === "" ? "" : `-${host.port}`}` : "";
  const name = words
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "")
    .slice(0, 58);
  if (name === "" || !taken.includes(name)) return name;
  for (let next = 2; ; next++) if (!taken.includes(`${name}-${next}`)) return `${name}-${next}`;
}

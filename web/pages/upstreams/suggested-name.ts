// A name for a model server, from its address.

/** A name as the server takes it, and not one of those that are taken. */
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

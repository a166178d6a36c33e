// Describes a backup's content in words.
import { formatCount } from "../terminal/figures.ts";

const named: Readonly<Record<string, readonly [one: string, many: string]>> = {
  accounts: ["account", "accounts"],
  keys: ["key", "keys"],
  people: ["person", "people"],
  apps: ["app", "apps"],
  requests: ["request", "requests"],
  chats: ["stored chat", "stored chats"],
  responses: ["stored response", "stored responses"],
};

/** Returns text such as `2 accounts, 41 keys, 3 people, 10,234 requests`, without zero counts. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(named).flatMap(([name, [one, many]]) => {
    const count = counts[name] ?? 0;
    return count === 0 ? [] : [`${formatCount(count)} ${count === 1 ? one : many}`];
  });
  return parts.length === 0 ? "an empty database" : parts.join(", ");
}

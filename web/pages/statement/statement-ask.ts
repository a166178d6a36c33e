// The query in the page's address: the month, the grouping, and the account, or a key, person, app or tag.
import type { Query } from "../../api/client.ts";
import { bucketStart } from "../../api/usage.ts";

export const defaults = { month: "", by: "key", account: "", organization: "", key: "", person: "", app: "", tag: "" };
export type Said = Readonly<Record<keyof typeof defaults, string>>;

/** The value of `account` for the statement of all accounts, which has one line per account. */
export const allAccounts = "all";

/** Number of months that can be chosen, including the current month. */
const months = 36;

export const groupings: readonly { value: string; label: string }[] = [
  { value: "key", label: "Key" },
  { value: "person", label: "Person" },
  { value: "model", label: "Model" },
  { value: "tag", label: "Tag" },
  { value: "app", label: "App" },
  { value: "key,model", label: "Key and model" },
  { value: "person,model", label: "Person and model" },
  { value: "model,tag", label: "Model and tag" },
  { value: "none", label: "None, only the total" },
];

export interface Asked {
  path: string;
  query: Query;
  /** The month from the address, by default the current one. */
  month: string;
  /** The titles of the columns before the figures. */
  columns: readonly string[];
}

export function askOf(said: Said, nowSeconds: number): Asked {
  const month = /^\d{4}-(0[1-9]|1[0-2])$/.test(said.month) ? said.month : monthText(nowSeconds);
  if (said.account === allAccounts) {
    return {
      path: "/v1/admin/statement",
      query: { month, organization: said.organization || undefined },
      month,
      columns: ["account"],
    };
  }
  const columns = groupings.some(({ value }) => value === said.by) && said.by !== "none" ? said.by.split(",") : [];
  const part = Object.fromEntries(
    (["key", "person", "app", "tag"] as const).map((name) => [name, said[name] === "" ? undefined : said[name]]),
  );
  const path =
    said.account === "" ? "/v1/statement" : `/v1/admin/accounts/${encodeURIComponent(said.account)}/statement`;
  const group_by = columns.length === 0 ? undefined : columns;
  return { path, query: { month, group_by, ...part }, month, columns };
}

/** Returns months in UTC, newest first. */
export function recentMonths(nowSeconds: number): string[] {
  const found: string[] = [];
  for (let at = nowSeconds; found.length < months; at = bucketStart("month", at) - 1) found.push(monthText(at));
  return found;
}

export function monthText(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 7);
}

/** Returns the name of a UTC month, whatever the reader's time zone. */
export function monthName(month: string): string {
  const format = new Intl.DateTimeFormat("en", { month: "long", year: "numeric", timeZone: "UTC" });
  return format.format(Date.parse(`${month}-01T00:00:00Z`));
}

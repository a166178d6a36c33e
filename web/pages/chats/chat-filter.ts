// The filter of stored chats, in the page's address and in the API's query.
import type { Query } from "../../api/client.ts";

/** The filter parameters in the page's address. `labels` holds one `name=value` per line. */
export const noFilter = { search: "", model: "", labels: "" };
export type ChatFilter = Readonly<Record<keyof typeof noFilter, string>>;

export const maxSearched = 200;

export function queryOf({ search, model, labels }: ChatFilter): Query {
  const wanted = labelsOf(labels).map((label) => {
    const { name, value } = parted(label);
    return [`metadata[${name}]`, value];
  });
  return { ...Object.fromEntries(wanted), order: "desc", limit: 50, model, search: search.slice(0, maxSearched) };
}

export function labelsOf(text: string): string[] {
  return text.split("\n").filter(isLabel);
}

/**
 * Reports whether a text is `name=value` with both parts. For an empty value, the server would search for labels whose
 * value is empty.
 */
export function isLabel(text: string): boolean {
  const { name, value } = parted(text);
  return name !== "" && value !== "";
}

function parted(label: string) {
  const at = label.indexOf("=");
  return at < 0 ? { name: label, value: "" } : { name: label.slice(0, at).trim(), value: label.slice(at + 1).trim() };
}

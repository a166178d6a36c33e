// Which stored chats are listed: as the address says it, and as the server takes it.
import type { Query } from "../../api/client.ts";

/** The parameters of the address. `labels`: one a line, `name=value`. */
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

/** `name=value`, both of them said: the server would take an empty value for one to be looked for. */
export function isLabel(text: string): boolean {
  const { name, value } = parted(text);
  return name !== "" && value !== "";
}

function parted(label: string) {
  const at = label.indexOf("=");
  return at < 0 ? { name: label, value: "" } : { name: label.slice(0, at).trim(), value: label.slice(at + 1).trim() };
}

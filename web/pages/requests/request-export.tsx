// Exports the filtered log as CSV, newest requests first.
import { notifications } from "@mantine/notifications";
import { DownloadIcon } from "@primer/octicons-react";
import { useState } from "react";
import { ApiFailure, type Query } from "../../api/client.ts";
import { pagesOf } from "../../api/queries.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { download } from "../../parts/page/download.ts";
import { count } from "../../parts/words/figures.ts";
import type { LoggedRequest } from "./request-log.ts";

const pageRows = 200;
const maxPages = 50;

const columns = [
  ...(["id", "at", "operation", "model", "key", "app", "stream", "tags", "outcome"] as const),
  ...(["error_code", "error_status", "prompt_tokens", "cached_tokens", "completion_tokens", "cost"] as const),
  ...(["first_token_ms", "duration_ms", "account"] as const),
] satisfies readonly (keyof LoggedRequest)[];

export function RequestExport({ path, query }: { path: string; query: Query }) {
  const [loaded, setLoaded] = useState<number>();
  const save = async () => {
    setLoaded(0);
    try {
      const rows: LoggedRequest[] = [];
      let isAll = false;
      const pages = pagesOf<LoggedRequest>(path, { ...query, limit: pageRows }, new AbortController().signal, maxPages);
      for await (const { data, isLast } of pages) {
        rows.push(...data);
        isAll = isLast;
        setLoaded(rows.length);
      }
      const name = `headrace-logs-${new Date().toISOString().slice(0, 10)}.csv`;
      download(name, "text/csv", csvOf(rows));
      notifications.show({
        title: "Exported",
        message: `${name} has ${count(rows.length)} requests.${isAll ? "" : " There are older requests: choose a time range to export them."}`,
        color: isAll ? "green" : "orange",
      });
    } catch (error) {
      notifications.show({
        title: "The export failed",
        message: error instanceof ApiFailure ? error.message : String(error),
        color: "red",
      });
    } finally {
      setLoaded(undefined);
    }
  };
  return (
    <PlainButton leftSection={<DownloadIcon />} disabled={loaded !== undefined} onClick={save}>
      {loaded === undefined ? "Export CSV" : `${count(loaded)} requests…`}
    </PlainButton>
  );
}

function csvOf(rows: readonly LoggedRequest[]): string {
  const lines = rows.map((row) => columns.map((name) => cellOf(name, row[name])).join(","));
  return `${[columns.join(","), ...lines].join("\r\n")}\r\n`;
}

function cellOf(name: string, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (name === "at") return new Date(Number(value) * 1000).toISOString();
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = Array.isArray(value) ? value.join(" ") : String(value);
  // Clients choose the names of models and tags, and a spreadsheet runs text as a formula if it begins with one of
  // these characters.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// Exports the data that the explorer shows, from the endpoint that the explorer reads: CSV from the server, or JSON.
import { Menu } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { DownloadIcon } from "@primer/octicons-react";
import { useState } from "react";
import { ApiFailure, send } from "../../api/client.ts";
import { loadUsage, pathOfUsage, type UsageAsk, usageQuery } from "../../api/usage.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { download } from "../../parts/page/download.ts";
import { count } from "../../parts/words/figures.ts";
import { dateText } from "./usage-ask.ts";

/** Maximum number of rows of a JSON file, which is built in the browser; CSV has no limit. */
const maxRows = 200_000;

/** Shows the export menu. `ask` is the query to export; undefined while there is nothing to export. */
export function UsageExport({ ask }: { ask: UsageAsk | undefined }) {
  const [progress, setProgress] = useState<number>();
  const save = async (kind: "csv" | "json") => {
    if (!ask) return;
    setProgress(0);
    try {
      const { text, rows, cut } = kind === "csv" ? await csvOf(ask) : await jsonOf(ask, setProgress);
      const name = fileName(ask, kind);
      download(name, kind === "csv" ? "text/csv" : "application/json", text);
      notifications.show({
        title: "Exported",
        message: `${name} has ${count(rows)} rows.${cut ? ` There are more rows: a JSON file has at most ${count(maxRows)}. Export CSV to get all.` : ""}`,
        color: cut ? "orange" : "green",
      });
    } catch (error) {
      notifications.show({
        title: "The export failed",
        message: error instanceof ApiFailure ? error.message : String(error),
        color: "red",
      });
    } finally {
      setProgress(undefined);
    }
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <PlainButton leftSection={<DownloadIcon />} disabled={!ask || progress !== undefined}>
          {progress === undefined ? "Export" : progress === 0 ? "Exporting…" : `${count(progress)} rows…`}
        </PlainButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => save("csv")}>CSV, all rows</Menu.Item>
        <Menu.Item onClick={() => save("json")}>JSON</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

interface Exported {
  text: string | Blob;
  rows: number;
  cut: boolean;
}

/** Joins the CSV files of several environments under one header row. */
async function csvOf(ask: UsageAsk): Promise<Exported> {
  const texts: string[] = [];
  for (const environment of ask.environments ?? [undefined]) {
    const response = await send("GET", pathOfUsage(ask), {
      query: usageQuery(ask),
      headers: { accept: "text/csv", ...(environment === undefined ? {} : { "headrace-environment": environment }) },
    });
    const text = await response.text();
    texts.push(texts.length === 0 ? text : text.slice(text.indexOf("\n") + 1));
  }
  const text = texts.join("");
  return { text, rows: Math.max(0, text.split("\n").length - 2), cut: false };
}

async function jsonOf(ask: UsageAsk, progress: (rows: number) => void): Promise<Exported> {
  const { rows, cut } = await loadUsage(ask, { atMost: maxRows, progress });
  return { text: `${JSON.stringify({ object: "list", data: rows }, null, 2)}\n`, rows: rows.length, cut };
}

function fileName({ start, end, groupBy }: UsageAsk, kind: string): string {
  const by = groupBy.length === 0 ? "" : `-by-${groupBy.join("-")}`;
  return `headrace-usage${by}-${dateText(start)}-to-${dateText(end - 1)}.${kind}`;
}

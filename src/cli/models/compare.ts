// `headrace models compare`: compares a model with the models to which a share of its requests is routed.
import { type ComparisonWire, comparisonList } from "../../wire/models.ts";
import { printRows } from "../command.ts";
import { understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatCount, formatTime, formatUsd } from "../terminal/figures.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";
import { parseEnd, parseStart } from "../terminal/when.ts";
import { operatorNeeds } from "./model-records.ts";

export const compareCommand = serverCommand({
  name: "compare",
  summary: "compare a model with its shadow and the models that it shares its requests with",
  description: `Show what a model and those of its policies shadow and split did: requests, errors, times, tokens and cost. ${operatorNeeds}`,
  arguments: [["<id>", "the model whose requests are shared"]],
  options: {
    start: ["--start <when>", "first day or time (default: a week before the end)", parseStart],
    end: ["--end <when>", "last day, or time (default: now)", parseEnd],
    json: ["--json", "print the comparisons as the API gives them"],
  },
  examples: ["headrace models compare llama3.3", "headrace models compare llama3.3 --start 2026-11-20"],
  async run({ connect, request, options, terminal }, id) {
    const query = new URLSearchParams({ model: id });
    for (const name of ["start", "end"] as const) {
      if (options[name] !== undefined) query.set(name, String(options[name]));
    }
    const answer = await request(`/admin/comparisons?${query}`);
    const { data } = understood(comparisonList, answer, await connect(), "list of comparisons");
    const show = () => {
      if (data.length === 0)
        terminal.note(`${printable(id)} has neither a shadow nor a split: set one in its policies.`);
      for (const comparison of data) printComparison(terminal, comparison);
    };
    return { json: data, show };
  },
});

function printComparison(terminal: Terminal, { kind, percent, start, end, own, other, partial }: ComparisonWire): void {
  const what = kind === "shadow" ? "also go to" : "are answered by";
  terminal.print(
    `${percent} % of ${printable(own.model)} ${what} ${printable(other.model)}, ${formatTime(start)} to ${formatTime(end)}:`,
  );
  printRows(
    terminal,
    [own, other],
    [
      ["MODEL", ({ model }) => model],
      ["REQUESTS", ({ requests }) => formatCount(requests)],
      ["ERRORS", ({ errors }) => formatCount(errors)],
      ["FIRST TOKEN P50/P95", ({ first_token_ms: times }) => timesText(times)],
      ["TOTAL P50/P95", ({ duration_ms: times }) => timesText(times)],
      ["TOKENS/S", ({ tokens_per_second: speed }) => speed?.toFixed(1) ?? "-"],
      ["PROMPT", ({ prompt_tokens: tokens }) => formatCount(tokens)],
      ["COMPLETION", ({ completion_tokens: tokens }) => formatCount(tokens)],
      ["MEAN ANSWER", ({ answer_tokens: tokens }) => tokens?.toFixed(0) ?? "-"],
      ["COST", ({ cost }) => (cost === null ? "-" : formatUsd(cost))],
    ],
  );
  if (partial)
    terminal.note("Only the newest requests were searched, because there are very many. Give a shorter time span.");
}

function timesText({ p50, p95 }: ComparisonWire["own"]["duration_ms"]): string {
  return p50 === null || p95 === null ? "-" : `${p50} / ${p95} ms`;
}

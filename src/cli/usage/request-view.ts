// Shows requests to a person: a table, or one request with all its steps.

import { guardrailResults } from "../../features/guardrails/command.ts";
import { formatCount, formatTime, formatUsd } from "../terminal/figures.ts";
import { paragraph } from "../terminal/fitted-text.ts";
import { formatFacts, formatTable, printable, type Style, type Terminal } from "../terminal/terminal.ts";
import type { ListedRequest, RequestDetail, RequestStep } from "./request-records.ts";

const header = ["TIME", "OUTCOME", "MODEL", "TOKENS", "DURATION", "ID", "KEY"];
/**
 * `figures` has the indexes of the number columns. `ownLine` is the index of the first column that moves to a separate
 * line on a narrow terminal.
 */
const figures = [3, 4];
const ownLine = 5;
const modelColumn = 2;
const minModel = 8;

/** Prints a table. On a narrow terminal, the id and key are below their request; otherwise each request is one line. */
export function printRequests(terminal: Terminal, requests: readonly ListedRequest[]): void {
  const { stdout, unicode } = terminal;
  // The table gets no width, so that the id is never broken. Other cells are cut, or move to a separate line.
  const out = { ...terminal.out, columns: undefined };
  const rows = requests.map((request) => [
    formatTime(request.at),
    endingOf(request),
    request.model ?? "-",
    formatCount(request.total_tokens),
    formatMs(request.duration_ms),
    request.id,
    request.key,
  ]);
  const whole = formatTable(header, rows, out, figures);
  const columns = stdout.isTTY === true ? (stdout.columns ?? 80) : Number.POSITIVE_INFINITY;
  if (widthOf(whole) < columns) {
    terminal.print(whole);
    return;
  }
  const mark = unicode ? "…" : "~";
  const short = rows.map((row) => row.slice(0, ownLine));
  const table = (of: readonly (readonly string[])[]) => formatTable(header.slice(0, ownLine), of, out, figures);
  const over = widthOf(table(short)) - (columns - 1);
  const widest = Math.max(...short.map((row) => Bun.stringWidth(printable(row[modelColumn] ?? ""))));
  const width = Math.max(minModel, widest - Math.max(0, over));
  const [first = "", ...lines] = table(
    short.map((row) => row.map((cell, i) => (i === modelColumn ? cutMiddle(printable(cell), width, mark) : cell))),
  ).split("\n");
  const below = rows.map((row) => {
    const [id = "", key = ""] = row.slice(ownLine).map(printable);
    return out.dim(`  ${id}  ${cutEnd(key, columns - 1 - 4 - id.length, mark)}`);
  });
  terminal.print([first, ...lines.flatMap((line, i) => [line, below[i] ?? ""])].join("\n"));
}

function cutEnd(text: string, width: number, mark: string): string {
  return text.length <= width ? text : text.slice(0, Math.max(0, width - 1)) + mark;
}

/** Shortens a name in the middle, because similar names differ at their ends. */
function cutMiddle(text: string, width: number, mark: string): string {
  if (text.length <= width) return text;
  const start = Math.floor((width - 1) / 3);
  return text.slice(0, start) + mark + text.slice(text.length - (width - 1 - start));
}

function widthOf(table: string): number {
  return Math.max(...table.split("\n").map((line) => Bun.stringWidth(line)));
}

/** Returns the outcome as text: `completed`, `completed, cached` (from the response cache) or `refused 429`. */
function endingOf({ outcome, error_status: status, from_cache: isKept }: ListedRequest): string {
  if (isKept) return `${outcome}, cached`;
  return status == null ? outcome : `${outcome} ${status}`;
}

export function printRequest(terminal: Terminal, request: RequestDetail): void {
  const { out, stdout } = terminal;
  const { bold, green, red, yellow } = out;
  const { outcome, error_code: code, error_message: message } = request;
  const paint = { completed: green, failed: red, refused: yellow }[outcome] ?? bold;
  const columns = stdout.isTTY === true ? (stdout.columns ?? 80) : undefined;
  terminal.print(`${bold(printable(request.id))}  ${paint(printable(endingOf(request)))}\n`);
  if (code !== null) terminal.print(lines(`${code}: ${message ?? meaningOf(request)}\n`, columns, ""));
  const facts: [string, string][] = [
    ["Time", formatTime(request.at)],
    ["Model", request.model ?? "not read"],
    ["Key", request.key],
    ["App", request.app ?? "none"],
    ["Operation", request.operation + (request.stream === null ? "" : request.stream ? ", streamed" : ", at once")],
  ];
  if (request.tags?.length) facts.push(["Tags", request.tags.join(", ")]);
  if (outcome !== "refused") facts.push(...figuresOf(request));
  facts.push(["Duration", formatMs(request.duration_ms)]);
  terminal.print(formatFacts(facts, out));
  if (request.trail.length > 0) terminal.print(`\n${bold("What was tried")}\n${trailOf(request, out, columns)}`);
}

function meaningOf({ attempts, error_code: code }: RequestDetail): string {
  if (code === "quota_spent") return "a quota with hard_stop was spent, which ended the answer.";
  if (attempts == null || attempts === 0) return "no model server was asked.";
  return attempts === 1 ? "the model server that was asked did not answer." : "see what was tried.";
}

function figuresOf(request: RequestDetail): [string, string][] {
  const count = (value: number) => formatCount(value);
  const { prompt_tokens, completion_tokens, estimated, first_token_ms, tokens_per_second, upstream } = request;
  const part = (value: number | null | undefined, name: string) => (value ? [`${count(value)} ${name}`] : []);
  const ofPrompt = [
    ...part(request.cached_tokens, "cached"),
    ...part(request.cache_write_tokens, "written to a cache"),
  ];
  const prompt = withParts(`${count(prompt_tokens)} in`, ofPrompt);
  const answer = withParts(`${count(completion_tokens)} out`, part(request.reasoning_tokens, "of them thought"));
  const tokens = `${prompt}, ${answer}${estimated ? ", estimated" : ""}`;
  return [
    ["Answered by", request.from_cache ? "the response cache" : (upstream ?? "none")],
    ["Tokens", tokens],
    ...detailsOf(request),
    ["Cost", request.cost === null ? "the model has no price" : formatUsd(request.cost)],
    ["In the queue", formatMs(request.queue_ms)],
    ...(first_token_ms === null ? [] : [["First token", `after ${formatMs(first_token_ms)}`] as [string, string]]),
    ...(tokens_per_second === null ? [] : [["Speed", `${tokens_per_second} tokens/s`] as [string, string]]),
  ];
}

/** Returns the usage details that only few servers report. */
function detailsOf({ usage_details: details }: RequestDetail): [string, string][] {
  if (!details) return [];
  const { served, billed } = details;
  const among = [
    [details.cache_write_1h_tokens, "written to a cache for an hour"],
    [details.input_audio_tokens, "audio in"],
    [details.input_image_tokens, "images in"],
    [details.output_audio_tokens, "audio out"],
    [details.output_image_tokens, "images out"],
  ] as const;
  const parts = among.flatMap(([tokens, name]) => (tokens ? [`${formatCount(tokens)} ${name}`] : []));
  const beside = [
    ["Searches", details.searches],
    ["Documents", details.documents],
    ["Search units", details.search_units],
    ["Characters", details.characters],
    ["Seconds", details.seconds],
    ["Images", details.images],
    ["Bytes in", details.bytes_in],
    ["Bytes out", details.bytes_out],
    ["Failed results", details.tool_errors],
  ] as const;
  return [
    ...(parts.length > 0 ? [["Among them", parts.join(", ")] as [string, string]] : []),
    ...beside.flatMap(([name, value]): [string, string][] => (value ? [[name, formatCount(value)]] : [])),
    ...(served?.length ? [["Served as", served.join(", ")] as [string, string]] : []),
    ...(billed == null ? [] : [["Vendor's bill", formatUsd(billed)] as [string, string]]),
  ];
}

function withParts(text: string, parts: readonly string[]): string {
  return parts.length === 0 ? text : `${text} (${parts.join(", ")})`;
}

const results: Readonly<Record<string, string>> = {
  answered: "answered",
  refused: "refused",
  timed_out: "did not answer in time",
  unreachable: "connection failed",
  broke_off: "its answer broke off or could not be read",
  no_room: "the gateway could hold no more of its answer",
  cancelled: "left before it had answered",
  queue_full: "no place was free, and the queue was full",
  queue_timeout: "no place became free in time",
  resting: "not asked: it rests after failures",
  away: "not asked: it is not connected, or is being taken out of service",
  not_retried: "not asked: too many requests were second tries already",
  overflowed: "went there by the policy of its model",
  ...guardrailResults,
  over_quota: "not asked: it costs more than a quota has left",
};

const guarded: ReadonlySet<string> = new Set(Object.keys(guardrailResults));

function trailOf({ trail, model }: RequestDetail, { dim }: Style, columns: number | undefined): string {
  const servers = Math.max(...trail.map(({ server }) => server ?? 0));
  const starts = trail.map(({ started_ms }) => formatMs(started_ms));
  const width = Math.max(...starts.map((start) => start.length));
  const margin = " ".repeat(2 + width + 2);
  return trail
    .map((step, i) => {
      const { reason, left_out: leftOut } = step;
      const gap = leftOut
        ? `${margin}${dim(leftOut === 1 ? "1 step is left out" : `${leftOut} steps are left out`)}\n`
        : "";
      const said = lines(stepText(step, servers, model), columns, margin);
      const why = reason === null ? "" : `\n${margin}${dim(lines(reason, columns, margin))}`;
      return `${gap}  ${dim((starts[i] ?? "").padStart(width))}  ${said}${why}`;
    })
    .join("\n");
}

function stepText(step: RequestStep, servers: number, asked: string | null): string {
  const { server, upstream, upstream_model, model, result, status, duration_ms } = step;
  const name = guarded.has(result) ? "guardrail" : server === null ? "queue" : `model server ${server} of ${servers}`;
  const shown = upstream === null ? name : `${upstream} (${name})`;
  const fallbackText = model === asked ? "" : `, for ${model}`;
  const id = upstream_model === null || upstream_model === model ? "" : `, as ${upstream_model}`;
  const words = (results[result] ?? result) + (status === null ? "" : ` with ${status}`);
  return `${shown}${fallbackText}${id}: ${words}${duration_ms > 0 ? `, ${formatMs(duration_ms)}` : ""}`;
}

/** Wraps text at a terminal. The first line has no margin. */
function lines(text: string, columns: number | undefined, margin: string): string {
  return text
    .split("\n")
    .flatMap((line) => paragraph(printable(line), columns, margin.length))
    .join(`\n${margin}`);
}

/** Formats a duration: `840 ms`, `1.6 s`, `2 min`. */
function formatMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

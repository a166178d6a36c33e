// The GGUF files of a server, for `headrace models list --files`, `show` and `remove`.
import { z } from "zod";
import type { Fit } from "../../domain/models/memory-need.ts";
import { formatBytes } from "../../engines/llama/byte-size.ts";
import { modelMemoryShape, type PulledModelWire, pulledModelShape } from "../../wire/pulled-models.ts";
import { type Column, type Outcome, printRows } from "../command.ts";
import { understood } from "../login/api-request.ts";
import type { ServerCall } from "../login/server-command.ts";
import { formatCount, formatTime } from "../terminal/figures.ts";
import { formatFacts, printable, type Terminal } from "../terminal/terminal.ts";

export const fitNames: Record<Fit, string> = {
  now: "yes",
  evicting: "once idle models leave",
  waiting: "in its turn",
  reduced: "with less context",
  never: "no",
};

const fileList = z.object({ data: z.array(pulledModelShape), memory: modelMemoryShape });
const path = "/admin/pulled-models";

/** Returns the server's model files. Only operators may read them. Rejects with an ApiError or CliError. */
async function readFiles({ request, connect }: ServerCall<unknown>) {
  return understood(fileList, await request(path), await connect(), "list of files");
}

export async function findFile(call: ServerCall<unknown>, id: string): Promise<PulledModelWire | undefined> {
  return (await readFiles(call)).data.find((file) => file.id === id);
}

export async function listFiles(call: ServerCall<unknown>): Promise<Outcome> {
  const { data: files, memory } = await readFiles(call);
  const { terminal } = call;
  const show = () => {
    const { free_bytes: free, evictable_bytes: evictable, total_bytes: total } = memory;
    const idle = evictable > 0 ? `, and ${formatBytes(evictable)} are held by idle ones` : "";
    terminal.note(`Memory for models: ${formatBytes(free)} of ${formatBytes(total)} are free${idle}.`);
    if (files.length === 0) {
      return terminal.note("No model was pulled to this server. On its machine: headrace pull hf:Qwen/Qwen3-0.6B-GGUF");
    }
    const columns: Column<PulledModelWire>[] = [
      ["MODEL", ({ id }) => id],
      ["STATE", stateText],
      ["SIZE", ({ bytes }) => formatBytes(bytes)],
      ["PARAMS", ({ parameters }) => (parameters === null ? "-" : parameterText(parameters))],
      ["QUANT", ({ quantization }) => quantization ?? "-"],
      ["MEMORY", (file) => (file.memory ? formatBytes(file.memory.bytes) : "-")],
      ["FITS", ({ fit }) => (fit === null ? "-" : fitNames[fit])],
    ];
    printRows(terminal, files, columns, ["SIZE", "PARAMS", "MEMORY"]);
  };
  return { json: { data: files, memory }, show };
}

/** Prints the facts about a model's file on the server's disk. */
export function printFile(terminal: Terminal, file: PulledModelWire): void {
  const { memory, architecture, parameters, quantization, context_length: context } = file;
  const facts: [string, string][] = [
    ["File", `${formatBytes(file.bytes)}${quantization === null ? "" : `, stored as ${quantization}`}`],
    ["From", file.source ?? "unknown"],
    ["Pulled", formatTime(file.pulled_at)],
    [
      "Is",
      [architecture, parameters === null ? null : `${parameterText(parameters)} parameters`]
        .filter(isText)
        .join(", ") || "-",
    ],
    ["Trained for", context === null ? "unknown" : `${formatCount(context)} tokens`],
    ["Memory", memory ? memoryText(memory) : "unknown"],
    ["In memory", stateText(file)],
    ...(file.fit === null ? [] : [["Fits", fitNames[file.fit]] as [string, string]]),
  ];
  terminal.print(formatFacts(facts, terminal.out));
}

/** Asks for confirmation, deletes the file, and prints how much space that frees. */
export async function removeFile(call: ServerCall<unknown>, file: PulledModelWire, force: boolean): Promise<Outcome> {
  const { confirm, request, terminal } = call;
  const { id, bytes, in_use: inUse } = file;
  const used = inUse > 0 ? ` ${inUse === 1 ? "1 request is" : `${inUse} requests are`} with it.` : "";
  await confirm({
    question: `Delete the file of ${id} (${formatBytes(bytes)})`,
    consequence: `The server stops offering it.${used} headrace pull fetches it again.`,
    canBeUndone: true,
  });
  const answer = await request(`${path}/${encodeURIComponent(id)}${force ? "?force=true" : ""}`, { method: "DELETE" });
  return {
    json: answer,
    show: () => terminal.print(`${printable(id)} is deleted, ${formatBytes(bytes)} of the disk are free again.`),
  };
}

/** Formats `596 M` or `8.03 B`, as model vendors do. */
export function parameterText(count: number): string {
  const [size, unit] = count < 1e9 ? [count / 1e6, "M"] : [count / 1e9, "B"];
  return `${Number(size.toPrecision(3))} ${unit}`;
}

function memoryText({
  bytes,
  weights,
  cache,
  compute,
  context_length: context,
  parallel,
}: NonNullable<PulledModelWire["memory"]>) {
  const parts = `weights ${formatBytes(weights)}, context ${formatBytes(cache)}, the rest ${formatBytes(compute)}`;
  return `${formatBytes(bytes)} with ${formatCount(parallel)} × ${formatCount(context)} tokens (${parts})`;
}

function stateText({ state, use, in_use: inUse }: PulledModelWire): string {
  if (state === "incomplete") return "incomplete";
  return inUse > 0 ? `${use}, ${inUse} in use` : use;
}

function isText(value: string | null): value is string {
  return value !== null;
}

// `headrace models ps`, `load`, `stop`, `pin`, `unpin` and `log`: the model processes that a server starts on demand.
import { z } from "zod";
import { formatBytes } from "../../engines/llama/byte-size.ts";
import {
  type ModelProcessWire,
  modelProcessList,
  modelProcessOutput,
  modelProcessShape,
} from "../../wire/model-processes.ts";
import { modelMemoryShape } from "../../wire/pulled-models.ts";
import { type Outcome, printRows } from "../command.ts";
import { requestJson, understood } from "../login/api-request.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { formatRelative } from "../terminal/figures.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";
import { operatorNeeds } from "./model-records.ts";

const path = "/admin/model-processes";
const whichArgument = ["<name>", "name of the command, or the id of a model that it serves"] as const;
const json = ["--json", "print what the API gives"] as const;
const pollMs = 500;
/**
 * The server's memory for models. It is read from the list of model files, because the built-in engine shares this
 * memory.
 */
const filesMemory = z.object({ memory: modelMemoryShape });

export const psCommand = serverCommand({
  name: "ps",
  summary: "show which models are loaded, loading or waiting for memory",
  description: `Show the commands of the server that serve models, with their state and their memory. ${operatorNeeds} On the machine of a development server, its first key will do.`,
  options: { json },
  examples: ["headrace models ps", "headrace models ps --json"],
  async run({ connect, request, terminal, nowSeconds }) {
    const answer = await request(path);
    const { data, memory } = understood(modelProcessList, answer, await connect(), "list of model processes");
    const files = understood(filesMemory, await request("/admin/pulled-models"), await connect(), "list of files");
    const others = files.memory.held.filter(({ id }) => !data.some(({ name }) => name === id));
    const show = () => {
      if (data.length === 0) {
        terminal.note(
          "The server has no commands that serve models. List them under engine.commands in headrace.yaml.",
        );
      } else printTable(terminal, data, nowSeconds());
      for (const { name, state, failure } of data) {
        if (failure !== null && state !== "loaded") terminal.note(`${printable(name)} failed: ${printable(failure)}`);
      }
      if (others.length > 0) terminal.note(`By the built-in engine: ${others.map(heldText).join("; ")}.`);
      const pools = memory.map(({ pool, used, total }) => `${pool} ${formatBytes(used)} of ${formatBytes(total)}`);
      terminal.note(`Set aside: ${pools.join(", ")}.`);
    };
    return { json: answer, show };
  },
});

export const loadCommand = changeCommand("load", { loaded: true }, "load a model now, before a request needs it");
export const stopCommand = changeCommand("stop", { loaded: false }, "stop a model after its last request");
export const pinCommand = changeCommand("pin", { pinned: true }, "load a model, and keep it loaded");
export const unpinCommand = changeCommand("unpin", { pinned: false }, "allow other models to replace a pinned model");

function changeCommand(name: string, body: { loaded?: boolean; pinned?: boolean }, summary: string) {
  return serverCommand({
    name,
    summary,
    description: `${summary[0]?.toUpperCase()}${summary.slice(1)}. ${operatorNeeds}`,
    arguments: [whichArgument],
    options: { json },
    examples: [`headrace models ${name} qwen3`],
    async run(call, which) {
      return outcomeOf(call, await call.request(processPath(which), { method: "PATCH", body }));
    },
  });
}

export const logCommand = serverCommand({
  name: "log",
  summary: "show the log of a model server",
  description: `Show the last lines in the log of a model server, without credentials. ${operatorNeeds}`,
  arguments: [whichArgument],
  options: { follow: ["-f, --follow", "keep printing new lines, until Ctrl-C"], json },
  examples: ["headrace models log qwen3", "headrace models log qwen3 --follow"],
  async run({ ask, context, options, terminal }, which) {
    const read = (after: number) =>
      ask(async (connection, signal) => {
        const answer = await requestJson(connection, `${processPath(which)}/output?after=${after}`, signal);
        return understood(modelProcessOutput, answer, connection, "output of a model process").data;
      });
    const lines = await read(0);
    const print = (more: typeof lines) => {
      for (const { text } of more) terminal.print(printable(text));
    };
    if (!options.follow) return { json: lines, show: () => print(lines) };
    print(lines);
    let last = lines.at(-1)?.number ?? 0;
    return await ask(async (_, signal) => {
      for (;;) {
        await context.pause(pollMs, signal);
        const more = await read(last);
        last = more.at(-1)?.number ?? last;
        print(more);
      }
    });
  },
});

function printTable(terminal: Terminal, processes: readonly ModelProcessWire[], nowSeconds: number): void {
  printRows(
    terminal,
    processes,
    [
      ["NAME", ({ name }) => name],
      ["STATE", shortState],
      ["SINCE", ({ since }) => formatRelative(since, nowSeconds)],
      ["MEMORY", ({ memory }) => memoryText(memory)],
      ["RUNNING", ({ running }) => `${running}`],
      ["WAITING", ({ waiting }) => `${waiting}`],
      ["MODELS", ({ models }) => models.join(", ")],
    ],
    ["RUNNING", "WAITING"],
  );
}

function heldText({ id, state, bytes, pinned }: z.infer<typeof modelMemoryShape>["held"][number]): string {
  return `${printable(id)} ${state}, ${formatBytes(bytes)}${pinned ? ", pinned" : ""}`;
}

function processPath(which: string): string {
  return `${path}/${encodeURIComponent(which)}`;
}

async function outcomeOf({ connect, terminal }: ServerCall<unknown>, answer: unknown): Promise<Outcome> {
  const process = understood(modelProcessShape, answer, await connect(), "model process");
  return { json: answer, show: () => terminal.print(`${printable(process.name)}: ${stateText(process)}`) };
}

function stateText(process: ModelProcessWire): string {
  return process.state === "failed" ? `failed: ${printable(process.failure ?? "")}` : shortState(process);
}

/** Returns the state of a model process, without the reason of a failure, which may be very long. */
function shortState({ state, behind, pinned, is_next: isNext }: ModelProcessWire): string {
  if (state === "waiting" && behind.length > 0) return `waiting for ${printable(behind.join(", "))}`;
  if (pinned) return `${state}, pinned`;
  return isNext ? `${state}, next to leave` : state;
}

function memoryText(amounts: ModelProcessWire["memory"]): string {
  return Object.entries(amounts)
    .map(([pool, bytes]) => `${pool} ${formatBytes(bytes)}`)
    .join(", ");
}

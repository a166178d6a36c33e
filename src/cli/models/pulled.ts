// `headrace list` and `headrace rm`: lists the models that were pulled to this machine with their size, and removes
// them.
import { fitOf } from "../../domain/models/memory-need.ts";
import type { PulledModel, RemovedModel } from "../../domain/models/pulled-model.ts";
import { formatBytes } from "../../engines/llama/byte-size.ts";
import { machineMemory } from "../../engines/llama/machine-memory.ts";
import { demoId } from "../../engines/llama/model-store.ts";
import { listPulledModels, removePulledModel } from "../../engines/llama/pulled-models.ts";
import { type Column, command, dataDirOption, printRows } from "../command.ts";
import { formatRelative } from "../terminal/figures.ts";
import { CliError, printable } from "../terminal/terminal.ts";
import { fitNames, parameterText } from "./model-files.ts";

export const listCommand = command({
  name: "list",
  summary: "list the models that were pulled to this machine",
  description:
    "List the models that headrace pull has fetched into the data directory, with their size and the memory that they need.",
  options: { ...dataDirOption, json: ["--json", "print the list as JSON"] },
  examples: ["headrace list", "headrace list --json"],
  help: [
    "MEMORY is an estimate; FITS compares it with what is free on this machine now.",
    "What a running server serves, also from elsewhere, is listed by headrace models; its files, and which of them are loaded, by headrace models list --files.",
  ],
  async run({ context, options, terminal, nowSeconds }) {
    const models = await listPulledModels(await context.dataDir(options.dataDir));
    // This command does not know which models a server has loaded, so it uses the memory that all programs leave free.
    const here = { ...machineMemory(), evictable: 0, pinned: 0 };
    const show = () => {
      if (models.length === 0) {
        return terminal.note(
          "No model was pulled to this machine yet. Fetch one with: headrace pull hf:Qwen/Qwen3-0.6B-GGUF",
        );
      }
      const columns: Column<PulledModel>[] = [
        ["MODEL", ({ id }) => id],
        ["SIZE", ({ bytes }) => formatBytes(bytes)],
        ["PARAMS", ({ facts }) => (facts ? parameterText(facts.parameters) : "-")],
        ["QUANT", ({ facts }) => facts?.quantization ?? "-"],
        ["MEMORY", ({ memory }) => (memory ? formatBytes(memory.bytes) : "-")],
        ["FITS", ({ memory }) => (memory ? fitNames[fitOf(memory, here)] : "-")],
        [
          "PULLED",
          ({ state, pulledAt }) => (state === "ready" ? formatRelative(pulledAt, nowSeconds()) : "incomplete"),
        ],
        ["SOURCE", ({ source }) => source ?? "-"],
      ];
      printRows(terminal, models, columns, ["SIZE", "PARAMS", "MEMORY"]);
      if (models.length > 1) {
        terminal.note(`${formatBytes(models.reduce((sum, { bytes }) => sum + bytes, 0))} in all.`);
      }
    };
    return { json: models.map(asJson), show };
  },
});

export const rmCommand = command({
  name: "rm",
  summary: "delete models that were pulled to this machine",
  description: "Delete the files of models that headrace pull has fetched, interrupted downloads included.",
  arguments: [["<models...>", "their ids, as headrace list shows them"]],
  options: { yes: ["-y, --yes", "do not ask"], ...dataDirOption, json: ["--json", "print what was deleted as JSON"] },
  examples: ["headrace rm qwen3-0.6b-q8_0", "headrace rm qwen3-0.6b-q8_0 phi-4 --yes"],
  async run({ context, options, terminal, confirm }, ids) {
    const dataDir = await context.dataDir(options.dataDir);
    const all = await listPulledModels(dataDir);
    // All ids are checked before anything is deleted, so a mistyped id changes nothing.
    const models = [...new Set(ids)].map((id) => all.find((model) => model.id === id) ?? unknown(id));
    const names = models.map(({ id, bytes }) => `${id} (${formatBytes(bytes)})`).join(", ");
    await confirm({
      question: `Delete ${names}`,
      consequence: "A running server stops offering it; headrace pull fetches it again.",
      canBeUndone: true,
    });
    const removed: RemovedModel[] = [];
    try {
      for (const { id } of models) removed.push((await removePulledModel(dataDir, id)) ?? unknown(id));
    } finally {
      // If a later model cannot be deleted, for example during its download, the models deleted so far are still
      // printed.
      if (!options.json) {
        for (const { id, bytes } of removed) terminal.print(`${printable(id)} is deleted, ${formatBytes(bytes)}.`);
      } else if (removed.length > 0) terminal.print(JSON.stringify(removed.map(removedAsJson), undefined, 2));
    }
    const left = removed.flatMap((model) => model.left);
    if (left.length === 0) return;
    throw new CliError(`These files could not be deleted, but are not served now: ${printable(left.join(", "))}`);
  },
});

function unknown(id: string): never {
  if (id === demoId) {
    throw new CliError(`${id} is part of Headrace. To start without it: headrace serve --no-demo`);
  }
  throw new CliError(`There is no pulled model ${id} here. headrace list shows those that are.`);
}

function removedAsJson({ left, ...model }: RemovedModel) {
  return { ...asJson(model), left };
}

/** Returns a model with the API's member names. */
function asJson({ pulledAt, context, facts, memory, ...model }: PulledModel) {
  const { architecture = null, quantization = null, parameters = null } = facts ?? {};
  return {
    ...model,
    ...{ pulled_at: pulledAt, context_length: context, architecture, quantization, parameters },
    memory_bytes: memory?.bytes ?? null,
  };
}

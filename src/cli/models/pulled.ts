// `headrace list` and `headrace rm`: the models that were pulled to this machine, with their size, and their end.
import type { Command } from "commander";
import type { PulledModel, RemovedModel } from "../../domain/models/pulled-model.ts";
import { formatBytes } from "../../engines/llama/byte-size.ts";
import { demoId } from "../../engines/llama/model-store.ts";
import { listPulledModels, removePulledModel } from "../../engines/llama/pulled-models.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatRelative } from "../terminal/figures.ts";
import { confirm } from "../terminal/input.ts";
import { CliError, formatTable, printable } from "../terminal/terminal.ts";

interface PulledOptions {
  dataDir?: string;
  json?: boolean;
  yes?: boolean;
}

const dataDirOption = ["--data-dir <path>", "data directory (default: as headrace serve)"] as const;

export function registerList(program: Command, context: CliContext): void {
  program
    .command("list")
    .summary("list the models that were pulled to this machine")
    .description("List the models that headrace pull has fetched into the data directory, with their size.")
    .option(...dataDirOption)
    .option("--json", "print the list as JSON")
    .addHelpText(
      "after",
      `
Examples:
  headrace list
  headrace list --json

What a running server serves, also from elsewhere, is listed by headrace models.`,
    )
    .action((options: PulledOptions) => list(context, options));
}

export function registerRm(program: Command, context: CliContext): void {
  program
    .command("rm")
    .summary("delete models that were pulled to this machine")
    .description("Delete the files of models that headrace pull has fetched, interrupted downloads included.")
    .argument("<models...>", "their ids, as headrace list shows them")
    .option("-y, --yes", "do not ask")
    .option(...dataDirOption)
    .option("--json", "print what was deleted as JSON")
    .addHelpText("after", "\nExamples:\n  headrace rm qwen3-0.6b-q8_0\n  headrace rm qwen3-0.6b-q8_0 phi-4 --yes")
    .action((ids: string[], options: PulledOptions) => remove(context, ids, options));
}

async function list(context: CliContext, options: PulledOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const models = await listPulledModels(await context.dataDir(options.dataDir));
  if (options.json) {
    terminal.print(JSON.stringify(models.map(asJson), undefined, 2));
    return;
  }
  if (models.length === 0) {
    terminal.note("No model was pulled to this machine yet. Fetch one with: headrace pull hf:Qwen/Qwen3-0.6B-GGUF");
    return;
  }
  const nowSeconds = Math.floor(context.nowMs() / 1000);
  const rows = models.map((model) => [
    model.id,
    formatBytes(model.bytes),
    model.state === "ready" ? formatRelative(model.pulledAt, nowSeconds) : "incomplete",
    model.source ?? "-",
  ]);
  terminal.print(formatTable(["MODEL", "SIZE", "PULLED", "SOURCE"], rows, terminal.out, [1]));
  if (models.length > 1) terminal.note(`${formatBytes(models.reduce((sum, { bytes }) => sum + bytes, 0))} in all.`);
}

async function remove(context: CliContext, ids: readonly string[], options: PulledOptions): Promise<void> {
  context.begin();
  const { terminal, input } = context;
  const dataDir = await context.dataDir(options.dataDir);
  const all = await listPulledModels(dataDir);
  // Before anything is deleted: one mistyped id of several changes nothing.
  const models = [...new Set(ids)].map((id) => all.find((model) => model.id === id) ?? unknown(id));
  const names = models.map(({ id, bytes }) => `${id} (${formatBytes(bytes)})`).join(", ");
  await confirm(input, {
    question: `Delete ${names}`,
    consequence: "A running server stops offering it; headrace pull fetches it again.",
    canBeUndone: true,
    yes: options.yes,
  });
  const removed: RemovedModel[] = [];
  try {
    for (const { id } of models) removed.push((await removePulledModel(dataDir, id)) ?? unknown(id));
  } finally {
    // Also what was deleted before one that is refused, such as a model that is being pulled.
    if (!options.json) {
      for (const { id, bytes } of removed) terminal.print(`${printable(id)} is deleted, ${formatBytes(bytes)}.`);
    } else if (removed.length > 0) terminal.print(JSON.stringify(removed.map(removedAsJson), undefined, 2));
  }
  const left = removed.flatMap((model) => model.left);
  if (left.length === 0) return;
  throw new CliError(`These files could not be deleted, and are served no more: ${printable(left.join(", "))}`);
}

function unknown(id: string): never {
  if (id === demoId) {
    throw new CliError(`${id} is part of Headrace. To start without it: headrace serve --no-demo`);
  }
  throw new CliError(`There is no pulled model ${id} here. headrace list shows those that are.`);
}

function removedAsJson({ left, ...model }: RemovedModel) {
  return { ...asJson(model), left };
}

/** In the words of the API. */
function asJson({ pulledAt, context, ...model }: PulledModel) {
  return { ...model, pulled_at: pulledAt, context_length: context };
}

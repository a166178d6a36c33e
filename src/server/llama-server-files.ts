// Runs model files with an installed llama-server: each file becomes a command.
import type { Log } from "../base/log.ts";
import type { Config } from "../config/config.ts";
import { fileEngineName } from "../domain/models/engine.ts";
import type { FileElsewhere } from "../domain/models/pulled-model.ts";
import { upstreamDefaults } from "../domain/models/upstream.ts";
import { usualSpeech } from "../domain/models/upstream-speech.ts";
import type { Commands } from "../engines/commands/commands.ts";
import { type CommandSettings, commonEnvironment, portMark } from "../engines/commands/settings.ts";
import { readModelFile } from "../engines/llama/gguf/model-file.ts";
import type { LlamaModel } from "../engines/llama/llama-engine.ts";
import { type Amounts, amountOf, isGpu, ramPool } from "../engines/memory/amounts.ts";

export interface FileCommandsOptions {
  config: Config;
  /** Reads the models that the built-in engine would serve. */
  models(): Promise<readonly LlamaModel[]>;
  /** The memory budget that all models share. */
  totals: Amounts;
  environment: Readonly<Record<string, string | undefined>>;
  log: Log;
}

/** Seconds until loading counts as failed: a large model on a slow disk takes minutes. */
const readySeconds = 15 * 60;
const keepSeconds = 10 * 60;
const helpTimeoutMs = 10_000;

/** Returns commands for the existing files. Logs missing files. */
export async function fileCommands(options: FileCommandsOptions): Promise<CommandSettings[]> {
  const { config, log } = options;
  const { files } = config.engine;
  const models = files.length > 0 ? await options.models() : [];
  const commands: CommandSettings[] = [];
  for (const file of files) {
    const made = await commandOf(file, models, options);
    if (typeof made === "string") log.warn("model_file_skipped", { model: file.model, detail: made });
    else commands.push(made);
  }
  return commands;
}

/** Returns the control of each command that runs a model file, with its model ids. */
export function filesElsewhere({ engine }: Config, commands: Commands): FileElsewhere[] {
  return engine.files.flatMap(({ program, model, draft }) => {
    const command = commands.find(fileEngineName(program, model));
    return command ? [{ model, draft, process: command.control() }] : [];
  });
}

/** Returns the command, or why there is none. */
async function commandOf(
  file: Config["engine"]["files"][number],
  models: readonly LlamaModel[],
  options: FileCommandsOptions,
): Promise<CommandSettings | string> {
  const { config, totals, environment } = options;
  const model = models.find(({ id }) => id === file.model);
  const draft = file.draft === undefined ? undefined : models.find(({ id }) => id === file.draft);
  const absent = "was not pulled, nor is it a file of engine.models; it is looked for again at the next start";
  if (!model) return `${file.model} ${absent}`;
  if (file.draft !== undefined && !draft) return `its draft ${file.draft} ${absent}`;
  const program = Bun.which(file.program, { PATH: environment["PATH"] ?? "" });
  if (program === null)
    return `${file.program} is not on the PATH; install llama.cpp, or leave the model to the built-in engine`;
  const { context: asked, parallel: places, threads } = config.engine;
  const room = amountOf(totals, ramPool);
  const besides = await bytesOf([
    ...(draft ? [draft.path] : []),
    ...(file.projector === undefined ? [] : [file.projector]),
  ]);
  if (besides === undefined) return `its projector ${file.projector} or its draft cannot be read`;
  const need = model.memory?.(room - besides);
  const { context, parallel } = need ?? { context: asked ?? 8192, parallel: places ?? 4 };
  const onGpus = Object.keys(totals).some(isGpu);
  return {
    name: fileEngineName(file.program, file.model),
    command: [
      ...[program, "--model", model.path, "--alias", model.id, "--host", "127.0.0.1", "--port", portMark],
      // llama-server's context size is the sum over all slots.
      ...["--ctx-size", `${context * parallel}`, "--parallel", `${parallel}`],
      ...(threads === undefined ? [] : ["--threads", `${threads}`]),
      ...(model.capabilities?.completion === false ? ["--embeddings"] : []),
      ...(file.projector === undefined ? [] : ["--mmproj", file.projector]),
      ...(draft ? ["--model-draft", draft.path, ...(await draftKind(program, environment))] : []),
      ...file.more,
    ],
    ...{ env: {}, directory: undefined, models: [model.id], path: "/v1", readyPath: "/health", readySeconds },
    files: [model.path, ...(draft ? [draft.path] : []), ...(file.projector === undefined ? [] : [file.projector])],
    // The part that a GPU takes is unknown, so the memory is measured instead.
    memory: need && !onGpus ? { ram: need.bytes + besides, gpu: {} } : undefined,
    ...{ keepSeconds: model.eager ? null : keepSeconds, preload: model.eager, pinned: model.eager },
    ...{ group: undefined, parallel, asleepGpu: undefined, ...usualSpeech },
    timeoutSeconds: upstreamDefaults.timeoutSeconds,
    idleSeconds: upstreamDefaults.idleSeconds,
  };
}

/**
 * Returns the memory of additional weights, plus a fifth for computing with them. Undefined if a file cannot be read.
 */
async function bytesOf(paths: readonly string[]): Promise<number | undefined> {
  let bytes = 0;
  for (const path of paths) {
    const facts = await readModelFile([path]).catch(() => undefined);
    if (!facts) return undefined;
    bytes += Math.ceil(facts.fileBytes * 1.2);
  }
  return bytes;
}

/** Recent versions load a draft model but need an argument to use it, which older ones do not know. */
async function draftKind(program: string, environment: FileCommandsOptions["environment"]): Promise<string[]> {
  const child = Bun.spawn([program, "--help"], {
    env: commonEnvironment(environment),
    ...{ stdin: "ignore", stdout: "pipe", stderr: "ignore" },
    ...{ timeout: helpTimeoutMs, killSignal: "SIGKILL" },
  });
  const help = await new Response(child.stdout).text();
  return help.includes("--spec-type") ? ["--spec-type", "draft-simple"] : [];
}

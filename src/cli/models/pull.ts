// `headrace pull`: downloads a model from the Hugging Face hub and says how to use it.
import { formatBytes } from "../../engines/llama/byte-size.ts";
import { minMemory } from "../../engines/llama/gguf/estimate.ts";
import { defaultHubTiming } from "../../engines/llama/hub-request.ts";
import { machineMemory } from "../../engines/llama/machine-memory.ts";
import { type ModelFiles, preferredQuantizations } from "../../engines/llama/model-source.ts";
import type { ModelManifest } from "../../engines/llama/model-store.ts";
import { type PullObserver, pullModel } from "../../engines/llama/pull-model.ts";
import { SetupError } from "../../engines/llama/setup-error.ts";
import { command, dataDirOption, type OptionValues } from "../command.ts";
import type { CliContext } from "../terminal/context.ts";
import { type Progress, startProgress } from "../terminal/progress.ts";
import { Interrupted, interruptible, printable, type Terminal } from "../terminal/terminal.ts";

const pullHelp = `\
After the colon stands a quantisation, a file name or a path in the repository.
Without it the first of these is taken:
${preferenceText()}
An interrupted download continues when the same command is run again. What is
here is listed by headrace list and deleted by headrace rm.

Environment:
  HF_TOKEN      token for gated and private repositories
  HF_ENDPOINT   another address of the hub, such as a mirror`;

function preferenceText(): string {
  const half = Math.ceil(preferredQuantizations.length / 2);
  return [preferredQuantizations.slice(0, half), preferredQuantizations.slice(half)]
    .map((names) => `  ${names.join(", ")}`)
    .join(",\n");
}

const pullOptions = {
  name: ["--name <id>", "id to serve the model under (default: the file's name in lower case)"],
  ...dataDirOption,
  json: ["--json", "print one JSON object a line instead of text"],
} as const;
type PullOptions = OptionValues<typeof pullOptions>;

export const pullCommand = command({
  name: "pull",
  summary: "download a model from the Hugging Face hub",
  description:
    "Download a GGUF model from the Hugging Face hub into the data directory, where headrace serve finds it.",
  arguments: [["<source>", "hf:owner/repo or hf:owner/repo:file"]],
  options: pullOptions,
  examples: [
    "headrace pull hf:Qwen/Qwen3-0.6B-GGUF",
    "headrace pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0",
    "headrace pull hf:Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf --name qwen",
  ],
  help: [pullHelp],
  run: ({ context, options }, source) => pull(context, source, options),
});

async function pull(context: CliContext, source: string, options: PullOptions): Promise<void> {
  const { terminal } = context;
  const dataDir = await context.dataDir(options.dataDir);
  const hub = { ...context.pullSource(), timing: defaultHubTiming };
  const view = options.json ? new JsonView(terminal) : new TextView(terminal);
  try {
    const { manifest, alreadyThere } = await interruptible((signal) =>
      pullModel({ source, name: options.name, dataDir, hub, signal }, view),
    );
    view.done(manifest, alreadyThere);
  } catch (error) {
    const explanation = explain(error, view.keptBytes, commandLine(source, options));
    view.failed(explanation);
    throw explanation;
  }
}

/** Adds a remedy to a download error. Returns other errors unchanged. */
function explain(error: unknown, keptBytes: number, command: string): unknown {
  const resume = `${formatBytes(keptBytes)} are kept. To continue, run the same command again:\n  ${command}`;
  if (error instanceof Interrupted) return keptBytes > 0 ? error.with(`Interrupted. ${resume}`) : error;
  if (!(error instanceof SetupError && error.kind === "network")) return error;
  const advice =
    "Are you offline? A GGUF file that you already have can be served with: headrace serve --model ./file.gguf";
  const kept = keptBytes > 0 ? `\n${resume}` : "";
  return new SetupError(`${error.message} ${advice}${kept}`, { kind: "network", cause: error });
}

function commandLine(source: string, options: PullOptions): string {
  const name = options.name === undefined ? "" : ` --name ${options.name}`;
  const dataDir = options.dataDir === undefined ? "" : ` --data-dir ${quoted(options.dataDir)}`;
  return `headrace pull ${quoted(source)}${name}${dataDir}`;
}

/** Quotes text for a POSIX shell. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

interface PullView extends PullObserver {
  /** The bytes already on disk, from which the next run can continue. */
  keptBytes: number;
  done(manifest: ModelManifest, alreadyThere: boolean): void;
  failed(error: unknown): void;
}

class TextView implements PullView {
  keptBytes = 0;
  readonly #terminal: Terminal;
  #totalBytes = 0;
  #progress: Progress | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  selected(model: ModelFiles, id: string, chosen: boolean): void {
    const { bold, dim } = this.#terminal.err;
    const parts = model.parts.length > 1 ? `, ${model.parts.length} parts` : "";
    const file = printable(model.path);
    this.#totalBytes = model.bytes;
    this.#terminal.note(`${bold(file)} (${formatBytes(model.bytes)}${parts}), as model ${bold(id)}`);
    this.#terminal.note(this.#memoryText(model.bytes));
    if (chosen) {
      const order = `${preferredQuantizations.slice(0, 4).join(", ")}, …`;
      this.#terminal.note(dim(`Taken by preference (${order}); name another after a colon.`));
    }
  }

  #memoryText(fileBytes: number): string {
    const { total, free } = machineMemory();
    const least = minMemory(fileBytes);
    const needs = `It needs ${formatBytes(least)} of memory and more for its context`;
    if (least <= free) return this.#terminal.err.dim(`${needs}; ${formatBytes(free)} are free.`);
    const has = `this machine has ${formatBytes(total)}, of which ${formatBytes(free)} are free`;
    return this.#terminal.err.yellow(`${needs}; ${has}${least > total ? ": it cannot run here" : ""}.`);
  }

  progress(bytes: number): void {
    if (this.#progress === undefined) {
      if (bytes >= this.#totalBytes) return;
      if (bytes > 0) this.#terminal.note(`Continuing at ${formatBytes(bytes)}.`);
      this.#progress = startProgress(this.#terminal, { totalBytes: this.#totalBytes });
    }
    this.keptBytes = bytes;
    this.#progress.update(bytes);
  }

  retrying(reason: string, waitMs: number): void {
    const then = waitMs > 0 ? `; trying again in ${Math.ceil(waitMs / 1000)} s.` : ".";
    const line = this.#terminal.err.yellow(`${reason}${then}`);
    if (this.#progress) this.#progress.note(line);
    else this.#terminal.note(line);
  }

  inspecting(): void {
    this.#progress?.stop();
    this.#terminal.note("Checksum verified. Reading the model…");
  }

  done(manifest: ModelManifest, alreadyThere: boolean): void {
    const { bold, green } = this.#terminal.out;
    this.#terminal.print(
      `${green("Model")} ${bold(manifest.id)} ${green(alreadyThere ? "was here already." : "is here.")}`,
    );
    this.#terminal.print(`  ${traits(manifest)}`);
    this.#terminal.print("  A running headrace serve serves it within a minute; else start one: headrace serve");
  }

  failed(): void {
    this.#progress?.stop(true);
  }
}

class JsonView implements PullView {
  keptBytes = 0;
  readonly #terminal: Terminal;
  #totalBytes = 0;
  #progress: Progress | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  selected(model: ModelFiles, id: string, chosen: boolean): void {
    this.#totalBytes = model.bytes;
    const { path, quantization, bytes, parts } = model;
    const least = minMemory(bytes);
    const memory = { least_memory_bytes: least, fits: least <= machineMemory().total };
    const file = { file: path, quantization: quantization ?? null, bytes, parts: parts.length };
    this.#emit("selected", { id, ...file, chosen, ...memory });
  }

  progress(bytes: number): void {
    this.#progress ??= startProgress(this.#terminal, {
      totalBytes: this.#totalBytes,
      onReport: (report) =>
        this.#emit("progress", {
          bytes: report.bytes,
          total_bytes: report.totalBytes,
          bytes_per_second: report.bytesPerSecond,
        }),
    });
    this.keptBytes = bytes;
    this.#progress.update(bytes);
  }

  retrying(reason: string, waitMs: number): void {
    this.#emit("retry", { reason, wait_ms: waitMs });
  }

  inspecting(): void {
    this.#progress?.stop();
    this.#emit("verified", {});
  }

  done(manifest: ModelManifest, alreadyThere: boolean): void {
    const { id, file, bytes, sha256, source, context, capabilities, tools } = manifest;
    const details = { id, file, bytes, sha256, source, context: context ?? null, capabilities, tools };
    this.#emit("done", { ...details, already_there: alreadyThere });
  }

  failed(error: unknown): void {
    this.#progress?.stop(true);
    this.#emit("error", { message: error instanceof Error ? error.message : String(error) });
  }

  #emit(event: string, fields: Record<string, unknown>): void {
    this.#terminal.print(JSON.stringify({ event, ...fields }));
  }
}

/** Returns text such as `chat, completion, tools; 40960 tokens of context; 639 MB`. */
function traits({ capabilities, tools, context, bytes }: ModelManifest): string {
  const names = (["chat", "completion", "embeddings"] as const).filter((name) => capabilities[name]);
  const abilities = [...names, ...(tools ? ["tools"] : [])].join(", ");
  const length = context === undefined ? [] : [`${context} tokens of context`];
  return [abilities, ...length, formatBytes(bytes)].join("; ");
}

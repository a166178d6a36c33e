// The models of the built-in engine: the demo model, files named in the configuration, and pulled ones.
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { basename } from "node:path";
import { fieldError, GatewayError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type Config, ConfigError, type Problem } from "../config/config.ts";
import { environments } from "../domain/api-key.ts";
import type { PulledModelStore } from "../domain/models/pulled-model.ts";
import { BackgroundPulls } from "../engines/llama/background-pulls.ts";
import { currentPlatform, defaultInstallComputes, installedEngine } from "../engines/llama/engine-backends.ts";
import { fittedMemory } from "../engines/llama/gguf/estimate.ts";
import { readModelFile, unreadModelFile } from "../engines/llama/gguf/model-file.ts";
import type { Hub } from "../engines/llama/hub-request.ts";
import { LlamaEngine, type LlamaEngineOptions, type LlamaModel } from "../engines/llama/llama-engine.ts";
import { demoId, listModels, modelIdFrom } from "../engines/llama/model-store.ts";
import { listPulledModels, removePulledModel } from "../engines/llama/pulled-models.ts";
import { SetupError } from "../engines/llama/setup-error.ts";
import { demoModelFile } from "../installation/paths.ts";

const demoModel: LlamaModel = {
  id: demoId,
  path: demoModelFile,
  ownedBy: "headrace",
  environments,
  capabilities: { chat: true, completion: true, embeddings: true, tokenize: true },
  context: 1024,
  eager: true,
};

export interface BuiltInEngineOptions extends Pick<LlamaEngineOptions, "budget" | "log" | "onOpen" | "onReady"> {
  config: Config;
  /** The ids of models that another program runs. */
  elsewhere: ReadonlySet<string>;
}

export async function createBuiltInEngine({
  config,
  elsewhere,
  ...options
}: BuiltInEngineOptions): Promise<LlamaEngine> {
  const { log } = options;
  const installed = await installedEngine(config.dataDir);
  const platform = currentPlatform();
  if (installed === undefined && !defaultInstallComputes(platform)) {
    const remedy = "models of upstreams do without it; `headrace engine install cpu` fetches it where there is one";
    log.warn("engine_absent", { detail: `this installation has no llama.cpp for ${platform}: ${remedy}` });
  }
  const { context, parallel, threads } = config.engine;
  // The list is read repeatedly, but each fault is logged once.
  const reported = new Map<string, string>();
  const onSkipped = (file: string, reason: string) => {
    if (reported.get(file) === reason) return;
    reported.set(file, reason);
    log.warn("model_skipped", { file, detail: reason });
  };
  return new LlamaEngine({
    models: async () => (await builtInModels(config, onSkipped)).filter(({ id }) => !elsewhere.has(id)),
    context,
    parallel,
    threads,
    // The default install has Metal on macOS. On other systems, a GPU back-end is there only if it was installed on
    // purpose.
    gpu: process.platform === "darwin" || (installed && installed.gpu !== false) ? "auto" : false,
    libraryPath: installed?.libraryPath,
    ...options,
  });
}

/** Opens the store of pulled models. `hub` is where models are pulled from. */
export function openPulledModels(
  { dataDir, engine }: Config,
  hub: () => Hub,
  log: Log,
): PulledModelStore & { close(): Promise<void> } {
  const onFailed = (model: string, detail: string) => log.warn("pull_failed", { model, detail });
  const pulls = new BackgroundPulls({ dataDir, hub, onFailed });
  return {
    list: () => listPulledModels(dataDir, engine),
    pulls: () => pulls.list(),
    offer: (...asked) => pulls.offer(...asked).catch(refuse),
    pull: (...asked) => pulls.start(...asked).catch(refuse),
    async remove(id) {
      await pulls.stop(id);
      return await removePulledModel(dataDir, id).catch((error: unknown) => {
        if (!(error instanceof SetupError)) throw error;
        const message = `The model ${id} is being pulled on this server. Delete it once that has ended.`;
        throw new GatewayError("service_unavailable", message, { retryAfterSeconds: 30, detail: error.message });
      });
    },
    close: () => pulls.close(),
  };
}

/** Throws the error of a failed pull in the form for clients. */
function refuse(error: unknown): never {
  if (error instanceof ConfigError) throw new GatewayError("service_unavailable", error.message, { cause: error });
  if (!(error instanceof SetupError)) throw error;
  if (!error.transient) throw fieldError("source", error.message);
  const retryAfterSeconds = Math.ceil((error.retryAfterMs ?? 30_000) / 1000);
  throw new GatewayError("service_unavailable", error.message, { retryAfterSeconds });
}

/**
 * Checks the configured model files: each must exist, be a GGUF file, and have a unique id. Throws a ConfigError with
 * the file and a remedy before anything starts.
 */
export function checkModelFiles(config: Config): void {
  const problems: Problem[] = [];
  const report = (path: string, message: string, fix: string) => {
    problems.push({ file: undefined, line: undefined, column: undefined, path: `--model ${path}`, message, fix });
  };
  const seen = new Map(config.engine.demo ? [[demoId, "the demo model"]] : []);
  for (const path of config.engine.models) {
    const id = idOfFile(path);
    const other = seen.get(id);
    if (other) {
      report(
        path,
        `gives the model id \`${id}\`, as ${other} does`,
        "Rename the file, or use --no-demo where the demo model is meant.",
      );
    }
    seen.set(id, path);
    if (!existsSync(path))
      report(path, "there is no such file", "Check the path; a relative one starts from the working directory.");
    else if (!isGguf(path))
      report(path, "is not a GGUF file", "Give a model in GGUF format, whose name usually ends in .gguf.");
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

function isGguf(path: string): boolean {
  if (!statSync(path).isFile()) return false;
  const file = openSync(path, "r");
  try {
    const magic = Buffer.alloc(4);
    return readSync(file, magic, 0, 4, 0) === 4 && magic.toString("latin1") === "GGUF";
  } finally {
    closeSync(file);
  }
}

function idOfFile(path: string): string {
  return modelIdFrom(basename(path).replace(/\.gguf$/i, ""));
}

/** Returns the demo model, the configured and the pulled models, including those that another program runs. */
export async function builtInModels(
  config: Config,
  onSkipped: (file: string, reason: string) => void,
): Promise<LlamaModel[]> {
  const models = new Map<string, LlamaModel>();
  if (config.engine.demo) models.set(demoModel.id, { ...demoModel, ...(await memoryOf([demoModel.path], config)) });
  for (const path of config.engine.models) {
    const id = idOfFile(path);
    models.set(id, { id, path, ownedBy: "local", ...(await memoryOf([path], config)), eager: true });
  }
  for (const manifest of await listModels(config.dataDir, onSkipped)) {
    const { id, file, otherFiles, capabilities, context } = manifest;
    // A model that a flag or the configuration names takes precedence.
    if (models.has(id)) continue;
    models.set(id, {
      id,
      path: file,
      ownedBy: "local",
      capabilities,
      ...(context === undefined ? {} : { context }),
      ...(await memoryOf([file, ...otherFiles], config)),
      eager: false,
    });
  }
  return [...models.values()];
}

/**
 * Returns the memory that a model needs, or nothing if its file is missing. If the header is unreadable, the size alone
 * gives an estimate; the worker then reports the fault, or loads the file anyway.
 */
async function memoryOf(files: readonly string[], { engine }: Config): Promise<Pick<LlamaModel, "memory">> {
  const facts = await readModelFile(files)
    .catch(() => unreadModelFile(files))
    .catch(() => undefined);
  return facts ? { memory: (roomBytes) => fittedMemory(facts, engine, roomBytes) } : {};
}

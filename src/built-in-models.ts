// The models of the built-in engine: the demo model, files named in the configuration, and pulled ones.
import { basename, join } from "node:path";
import type { Config } from "./config.ts";
import { environments } from "./domain/api-key.ts";
import type { Log } from "./domain/log.ts";
import { installedEngine } from "./engines/llama/engine-backends.ts";
import { LlamaEngine, type LlamaModel } from "./engines/llama/llama-engine.ts";
import { listModels, modelIdFrom } from "./engines/llama/model-store.ts";

export const demoModelId = "tiny-demo";
const demoModel: LlamaModel = {
  id: demoModelId,
  path: join(import.meta.dir, "..", "models", "tiny-demo", "tiny-demo.gguf"),
  ownedBy: "headrace",
  environments,
  capabilities: { chat: true, completion: true, embeddings: true },
  context: 1024,
  eager: true,
};

/** `onReady` is called whenever a model was loaded and more is known of it. */
export async function createBuiltInEngine(config: Config, log: Log, onReady: () => void): Promise<LlamaEngine> {
  const installed = await installedEngine(config.dataDir);
  const { context, parallel, threads } = config.engine;
  return new LlamaEngine({
    models: () => builtInModels(config, log),
    context,
    parallel,
    threads,
    gpu: installed && installed.gpu !== false ? "auto" : false,
    libraryPath: installed?.libraryPath,
    log,
    onReady,
  });
}

async function builtInModels(config: Config, log: Log): Promise<LlamaModel[]> {
  const pulled = await listModels(config.dataDir, (file, reason) =>
    log.warn("model_skipped", { file, detail: reason }),
  );
  return [
    ...(config.engine.demo ? [demoModel] : []),
    ...config.engine.models.map((path) => ({
      id: modelIdFrom(basename(path).replace(/\.gguf$/i, "")),
      path,
      ownedBy: "local",
      eager: true,
    })),
    ...pulled.map((manifest) => ({
      id: manifest.id,
      path: manifest.file,
      ownedBy: "local",
      capabilities: manifest.capabilities,
      ...(manifest.context === undefined ? {} : { context: manifest.context }),
      eager: false,
    })),
  ];
}

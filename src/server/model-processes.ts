// Composes the commands that serve models, and their shared memory.
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Config, processEnvironment } from "../config/config.ts";
import type { SharedMemory } from "../domain/models/model-process.ts";
import { usualSpeech } from "../domain/models/upstream-speech.ts";
import type { CommandEngine } from "../engines/commands/command-engine.ts";
import { Commands, endLeftProcesses } from "../engines/commands/commands.ts";
import { type Amounts, gpuPool, groupPool, ramPool } from "../engines/memory/amounts.ts";
import { MemoryBudget } from "../engines/memory/budget.ts";
import { machineMemory } from "../engines/memory/machine-memory.ts";
import { builtInModels } from "./built-in-models.ts";
import { fileCommands } from "./llama-server-files.ts";

export interface ModelProcessesOptions {
  config: Config;
  clock: Clock;
  log: Log;
  /** Called when the command accepts requests, so that waiting requests continue. */
  onOpen(engine: CommandEngine): void;
  /** Called when the model is loaded and its abilities are known. */
  onLoaded(engine: CommandEngine): void;
}

/** Opens the commands that serve models. None starts before `start` of the commands is called. */
export async function openModelProcesses(options: ModelProcessesOptions) {
  const { config, clock, log } = options;
  const { commands, files, memory } = config.engine;
  const groups = commands.flatMap(({ group }) => (group === undefined ? [] : [[groupPool(group), 1]]));
  const totals = { ...(await memoryOf(memory, commands.length + files.length > 0)), ...Object.fromEntries(groups) };
  // Earlier processes may belong to commands that are not configured any more.
  await endLeftProcesses({ dataDir: config.dataDir, log: options.log });
  const budget = new MemoryBudget(totals, clock);
  const environment = processEnvironment();
  const ofFiles = await fileCommands({
    config,
    totals,
    environment,
    log,
    models: () => builtInModels(config, () => {}),
  });
  return {
    budget,
    commands: new Commands({
      ...{ ...options, budget, totals, dataDir: config.dataDir, environment },
      commands: [
        ...commands.map(({ apis = null, ...settings }) => ({ ...usualSpeech, ...settings, apis })),
        ...ofFiles,
      ],
      nowSeconds: () => clock.nowSeconds(),
    }),
  };
}

/** Returns the shared memory budget in the operators' form. */
export function sharedMemory(budget: MemoryBudget): SharedMemory {
  const { pools, waiting, next } = budget.view();
  return { pools, next, behind: new Map(waiting.map(({ name, behind }) => [name, behind])) };
}

async function memoryOf({ ram, gpu }: Config["engine"]["memory"], withGpus: boolean): Promise<Amounts> {
  const stated = {
    ...(ram === undefined ? {} : { [ramPool]: ram }),
    ...Object.fromEntries(Object.entries(gpu ?? {}).map(([index, bytes]) => [gpuPool(Number(index)), bytes])),
  };
  const found = await machineMemory(withGpus && gpu === undefined);
  if (gpu === undefined) return { ...found, ...stated };
  return { ...(ram === undefined ? { [ramPool]: found[ramPool] ?? 0 } : {}), ...stated };
}

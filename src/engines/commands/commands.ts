// Creates the engines of all configured commands, which share one memory budget.
import { join } from "node:path";
import { endMarked, markOf } from "../../processes/orphans.ts";
import type { Amounts } from "../memory/amounts.ts";
import { CommandEngine, type CommandEngineOptions } from "./command-engine.ts";
import { MemoryKnowledge } from "./memory-knowledge.ts";
import type { CommandSettings } from "./settings.ts";

/** The options of all commands. This process must hold the lock of the data directory. */
export interface CommandsOptions extends Omit<CommandEngineOptions, "settings" | "knowledge"> {
  commands: readonly CommandSettings[];
  totals: Amounts;
}

/** The interval between memory measurements. A model server's caches grow while it works. */
const measureMs = 30_000;

/**
 * Ends the processes that an earlier gateway with this data directory left running. The caller must hold the
 * directory's lock.
 */
export async function endLeftProcesses({ dataDir, log }: Pick<CommandsOptions, "dataDir" | "log">): Promise<void> {
  const ended = await endMarked(markOf(dataDir, ""));
  if (ended > 0) log.warn("model_processes_left", { ended, detail: "an earlier server did not end in order" });
}

export class Commands {
  readonly engines: readonly CommandEngine[];
  readonly #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: CommandsOptions) {
    const { commands, dataDir, totals } = options;
    const knowledge = new MemoryKnowledge(join(dataDir, "model-memory.json"), totals, options.log);
    this.engines = commands.map((settings) => new CommandEngine({ ...options, settings, knowledge }));
    if (commands.length === 0) return;
    this.#timer = setInterval(() => {
      for (const engine of this.engines) void engine.measure();
    }, measureMs);
    this.#timer.unref();
  }

  /** Loads the commands that are configured to run from the start. Call this method once the gateway listens. */
  start(): void {
    for (const { onDemand } of this.engines) onDemand.start();
  }

  find(name: string): CommandEngine | undefined {
    return this.engines.find((engine) => engine.name === name);
  }

  /** Stops all commands. Resolves once none of their processes is left. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.engines.map((engine) => engine.close()));
  }
}

// Commands that serve models, over a budget and a directory of their own, as tests of their life need them.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import type { Log, LogFields } from "../../src/base/log.ts";
import { usualSpeech } from "../../src/domain/models/upstream-speech.ts";
import type { CommandEngine } from "../../src/engines/commands/command-engine.ts";
import { Commands } from "../../src/engines/commands/commands.ts";
import { type CommandSettings, portMark } from "../../src/engines/commands/settings.ts";
import { MemoryBudget } from "../../src/engines/memory/budget.ts";
import { until } from "./headrace.ts";

const program = join(import.meta.dir, "model-server.ts");

export class ModelCommands implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), "headrace-commands-"));
  /** Names of the engines that opened, in order. */
  readonly opens: string[] = [];
  /** What was logged as a warning or an error. */
  readonly complaints: string[] = [];
  readonly #opened: Commands[] = [];

  /** One that runs the model server of the tests, with 4 bytes of RAM. */
  command(name: string, args: readonly string[] = [], changed: Partial<CommandSettings> = {}): CommandSettings {
    return {
      ...{ name, env: {}, directory: undefined, models: [name], path: "/v1", readyPath: undefined, readySeconds: 20 },
      command: [process.execPath, program, "--port", portMark, "--model", name, "--diary", this.#diaryFile, ...args],
      ...{ memory: { ram: 4, gpu: {} }, keepSeconds: null, preload: false, pinned: false, group: undefined },
      ...{ parallel: 2, asleepGpu: undefined, timeoutSeconds: 60, idleSeconds: 60, ...usualSpeech },
      ...changed,
    };
  }

  /** What the servers have told so far, such as `started a`. */
  diary(): string[] {
    const lines = readFileSync(this.#diaryFile, "utf8").split("\n").filter(Boolean);
    return lines.map((line) => line.split(" ").slice(0, 2).join(" "));
  }

  open(commands: readonly CommandSettings[], totals: Record<string, number> = { ram: 10 }): CommandEngine[] {
    const complain = (event: string, fields?: LogFields) =>
      void this.complaints.push(`${event} ${JSON.stringify(fields)}`);
    const log: Log = { info() {}, warn: complain, error: complain };
    const all = new Commands({
      ...{ commands, totals, log, environment: { PATH: Bun.env["PATH"], OPENAI_API_KEY: "sk-none-of-theirs" } },
      budget: new MemoryBudget(totals, systemClock),
      ...{ dataDir: this.directory, nowSeconds: () => 1, onLoaded() {}, stopMs: 500 },
      onOpen: ({ name }) => void this.opens.push(name),
    });
    this.#opened.push(all);
    return [...all.engines];
  }

  openOne(command: CommandSettings, totals?: Record<string, number>): CommandEngine {
    const [engine] = this.open([command], totals);
    if (!engine) throw new Error("There is none.");
    return engine;
  }

  openTwo(
    one: CommandSettings,
    other: CommandSettings,
    totals?: Record<string, number>,
  ): [CommandEngine, CommandEngine] {
    const [first, second] = this.open([one, other], totals);
    if (!first || !second) throw new Error("There are not two.");
    return [first, second];
  }

  /** One request waits for it, and leaves once it is loaded. */
  async load(engine: CommandEngine): Promise<void> {
    engine.onDemand.demand(0, 1);
    await reached(engine, "loaded");
    engine.onDemand.demand(0, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#opened.map((commands) => commands.close()));
    rmSync(this.directory, { recursive: true, force: true });
  }

  get #diaryFile(): string {
    return join(this.directory, "diary");
  }
}

export function reached(engine: CommandEngine, state: string): Promise<boolean> {
  return until(
    () => engine.figures().state === state,
    `${engine.name} is ${state}: ${JSON.stringify(engine.figures())}`,
  );
}

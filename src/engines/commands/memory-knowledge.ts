// The memory of commands: as configured, as measured earlier, or estimated from their files.
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Log } from "../../base/log.ts";
import { markedProcesses } from "../../processes/orphans.ts";
import { type Amounts, amountOf, gpuPool, isGpu, ramPool } from "../memory/amounts.ts";
import { gpuBytesOf } from "../memory/gpus.ts";
import type { CommandSettings } from "./settings.ts";

/**
 * The estimate for a model: the size of its file times `filePart`, plus `besideBytes`, because a model also needs
 * memory to compute.
 */
const filePart = 1.2;
const besideBytes = 500e6;
/** The estimate for a command that names no model file. */
const unknownBytes = 4e9;
/** The relative growth from which a new maximum is stored. Smaller changes are ignored. */
const minReportedPart = 0.02;

export class MemoryKnowledge {
  readonly #file: string;
  readonly #totals: Amounts;
  /** The measured memory by name and command. A changed command counts as another model. */
  readonly #learned: Map<string, Amounts>;

  readonly #log: Log;

  /** `file` stores the measurements between starts. `totals` are the totals of the memory budget. */
  constructor(file: string, totals: Amounts, log: Log) {
    this.#file = file;
    this.#totals = totals;
    this.#log = log;
    this.#learned = readLearned(file);
  }

  of(settings: CommandSettings): Amounts {
    const { memory } = settings;
    if (memory) {
      const gpu = Object.entries(memory.gpu).map(([index, bytes]) => [gpuPool(Number(index)), bytes]);
      return { [ramPool]: memory.ram, ...Object.fromEntries(gpu) };
    }
    const learned = this.#learned.get(keyOf(settings));
    return learned ? this.#bounded(learned) : this.#assumed(settings);
  }

  /**
   * Measures all processes with the mark, and keeps the maximum. Does nothing if the configuration states the memory.
   * Returns whether the maximum changed. If processes cannot be seen, as outside Linux, the estimate stays.
   */
  async measure(settings: CommandSettings, mark: string): Promise<boolean> {
    if (settings.memory) return false;
    const pids = markedProcesses(mark);
    const ram = (await Promise.all(pids.map(residentBytes))).reduce((sum, bytes) => sum + bytes, 0);
    if (ram === 0) return false;
    const seen: Record<string, number> = { [ramPool]: ram };
    if (Object.keys(this.#totals).some(isGpu)) {
      for (const [index, bytes] of await gpuBytesOf(pids)) seen[gpuPool(index)] = bytes;
    }
    return this.#learn(keyOf(settings), seen);
  }

  #learn(key: string, seen: Amounts): boolean {
    const known = this.#learned.get(key) ?? {};
    const pools = Object.keys({ ...known, ...seen });
    const most = Object.fromEntries(pools.map((pool) => [pool, Math.max(amountOf(known, pool), amountOf(seen, pool))]));
    if (pools.every((pool) => amountOf(most, pool) <= amountOf(known, pool) * (1 + minReportedPart))) return false;
    this.#learned.set(key, most);
    this.#keep();
    return true;
  }

  /** Stores the measurements. A measurement that is lost in a crash or on a full disk is made again. */
  #keep(): void {
    try {
      writeFileSync(`${this.#file}.new`, JSON.stringify(Object.fromEntries(this.#learned)), { mode: 0o600 });
      renameSync(`${this.#file}.new`, this.#file);
    } catch (error) {
      this.#log.warn("model_memory_not_kept", { file: this.#file, detail: String(error) });
    }
  }

  /**
   * Estimates the memory of a command that has not run yet. On a machine with GPUs nobody knows yet which pool the
   * model will use, so this once the memory is reserved in all of them.
   */
  #assumed({ command, directory }: CommandSettings): Amounts {
    const files = command.map((word) => fileBytes(resolve(directory ?? ".", word.replace(/^--?[\w-]+=/, ""))));
    const largest = Math.max(0, ...files);
    const bytes = largest > 0 ? largest * filePart + besideBytes : unknownBytes;
    const pools = Object.keys(this.#totals).filter((pool) => pool === ramPool || isGpu(pool));
    return this.#bounded(Object.fromEntries(pools.map((pool) => [pool, bytes])));
  }

  /**
   * Limits measured or estimated memory to the totals of the budget. Such a command has run, or may run, with all the
   * memory there is: one peak must not keep the command from ever running again.
   */
  #bounded(amounts: Amounts): Amounts {
    const entries = Object.entries(amounts);
    return Object.fromEntries(entries.map(([pool, bytes]) => [pool, Math.min(bytes, amountOf(this.#totals, pool))]));
  }
}

function keyOf({ name, command }: CommandSettings): string {
  return `${name} ${Bun.hash(JSON.stringify(command)).toString(36)}`;
}

function readLearned(file: string): Map<string, Amounts> {
  try {
    const kept: unknown = JSON.parse(readFileSync(file, "utf8"));
    const entries = Object.entries(kept as Record<string, Record<string, unknown>>);
    return new Map(
      entries.map(([key, amounts]) => [
        key,
        Object.fromEntries(
          Object.entries(amounts).flatMap(([pool, bytes]) => (typeof bytes === "number" ? [[pool, bytes]] : [])),
        ),
      ]),
    );
  } catch {
    // The file is missing or invalid, so everything is measured again.
    return new Map();
  }
}

/** Returns the size of a model file, or 0 for any other file: a program has a size too. */
function fileBytes(path: string): number {
  if (!/\.(gguf|bin|safetensors|pt|onnx)$/i.test(path)) return 0;
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Returns the proportional set size of a process: shared memory, such as a mapped model file, counts once over all
 * processes. The system walks through all pages of the process for that, so requests do not wait for the measurement.
 */
async function residentBytes(pid: number): Promise<number> {
  try {
    const [, kilobytes] = /^Pss:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/smaps_rollup`, "utf8")) ?? [];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}

// The memory that each command needs: configured, measured earlier, or estimated from its model files.
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Log } from "../../base/log.ts";
import { markedProcesses } from "../../processes/orphans.ts";
import { type Amounts, amountOf, gpuPool, isGpu, ramPool } from "../memory/amounts.ts";
import { gpuBytesOf } from "../memory/gpus.ts";
import type { CommandSettings } from "./settings.ts";

/**
 * A model's memory is estimated as its file size times `filePart`, plus `besideBytes`, because computing needs
 * memory too.
 */
const filePart = 1.2;
const besideBytes = 500e6;
/** The estimate for a command that names no model file. */
const unknownBytes = 4e9;
/** A new maximum is stored only if it exceeds the old one by this fraction. */
const minReportedPart = 0.02;

export class MemoryKnowledge {
  readonly #file: string;
  readonly #totals: Amounts;
  /** The measured memory by command name and command line. A changed command line is measured anew. */
  readonly #learned: Map<string, Amounts>;

  readonly #log: Log;

  /** `file` stores the measurements between starts. `totals` are the limits of the memory budget. */
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
   * Measures all processes with the mark and stores the maximum. Returns whether the maximum changed. Does
   * nothing if the memory is configured, or if processes cannot be inspected (outside Linux).
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

  /** Writes the measurements to the file. A failed write is only logged, because the memory is measured again. */
  #keep(): void {
    try {
      writeFileSync(`${this.#file}.new`, JSON.stringify(Object.fromEntries(this.#learned)), { mode: 0o600 });
      renameSync(`${this.#file}.new`, this.#file);
    } catch (error) {
      this.#log.warn("model_memory_not_kept", { file: this.#file, detail: String(error) });
    }
  }

  /**
   * Estimates the memory of a command that was never measured. The model may use RAM or any GPU, so the estimate
   * applies to each of them.
   */
  #assumed({ command, directory }: CommandSettings): Amounts {
    const files = command.map((word) => fileBytes(resolve(directory ?? ".", word.replace(/^--?[\w-]+=/, ""))));
    const largest = Math.max(0, ...files);
    const bytes = largest > 0 ? largest * filePart + besideBytes : unknownBytes;
    const pools = Object.keys(this.#totals).filter((pool) => pool === ramPool || isGpu(pool));
    return this.#bounded(Object.fromEntries(pools.map((pool) => [pool, bytes])));
  }

  /**
   * Limits an amount to the budget's totals. Otherwise one measured peak above a total would keep the command
   * from ever starting again.
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

/** Returns the size of a model file, or 0 for any other file, such as the program itself. */
function fileBytes(path: string): number {
  if (!/\.(gguf|bin|safetensors|pt|onnx)$/i.test(path)) return 0;
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Returns the proportional set size (PSS) of a process, in which a shared page counts once over all processes.
 * Reading it is slow, because the kernel visits every page.
 */
async function residentBytes(pid: number): Promise<number> {
  try {
    const [, kilobytes] = /^Pss:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/smaps_rollup`, "utf8")) ?? [];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}

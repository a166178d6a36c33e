// Fuzzing led by coverage: an input that reaches code which none before it reached is kept, and others are made of it.
import * as jsc from "bun:jsc";
import { join } from "node:path";
import { seeded } from "../support/seeded.ts";
import { examine } from "./examine.ts";
import { Mutator } from "./mutate.ts";
import type { Target } from "./targets.ts";

export interface Fault {
  /** The input, as JSON text. */
  input: string;
  message: string;
}

export interface FuzzResult {
  runs: number;
  /** Inputs that reached something new, in the order in which they were found, as byte text. */
  found: string[];
  fault?: Fault;
}

const root = join(import.meta.dir, "..", "..");
/** Asked after so many inputs, as it takes longer than most of them. */
const inputsPerLook = 8;

/**
 * What the engine's control-flow profiler saw executed of these files since the process began, as `bun test --coverage`
 * tells it: by lines of what Bun makes of the source, in which each branch has its own. BUN_JSC_useControlFlowProfiler=1
 * has to be set.
 */
function coverageOf(files: readonly string[]): string {
  const { codeCoverageForFile } = jsc as unknown as { codeCoverageForFile(path: string, asBuilt: boolean): string };
  return files.map((file) => codeCoverageForFile(join(root, file), true)).join("\n");
}

export class Fuzzer {
  readonly #target: Target;
  readonly #random: () => number;
  readonly #mutator: Mutator;
  readonly #inputs: Buffer[];
  readonly #found: string[] = [];
  #coverage = "";
  #runs = 0;

  /** `inputs`: as byte text. */
  constructor(target: Target, inputs: readonly string[], seed: number) {
    this.#target = target;
    this.#random = seeded(seed);
    this.#mutator = new Mutator(this.#random);
    this.#inputs = inputs.map((text) => Buffer.from(text, "latin1"));
  }

  /** Finds, among the inputs that were given, in their order, those that reach something which none before them did. */
  async telling(): Promise<FuzzResult> {
    for (const input of this.#inputs) {
      const fault = await this.#run(input);
      if (fault) return this.#result(fault);
      if (this.#isNew()) this.#found.push(input.toString("latin1"));
    }
    return this.#result();
  }

  /** Until `untilMs` of the monotonic clock, or a fault. */
  async fuzz(untilMs: number): Promise<FuzzResult> {
    for (const input of this.#inputs) {
      const fault = await this.#run(input);
      if (fault) return this.#result(fault);
    }
    this.#isNew();
    while (performance.now() < untilMs) {
      const fresh: Buffer[] = [];
      for (let count = 0; count < inputsPerLook; count++) {
        const input = this.#mutator.mutated(this.#chosen(), this.#inputs);
        const fault = await this.#run(input);
        if (fault) return this.#result(await this.#reduced(input, fault));
        fresh.push(input);
      }
      if (!this.#isNew()) continue;
      // Which of them it was is found out once all is over.
      this.#inputs.push(...fresh);
      this.#found.push(...fresh.map((input) => input.toString("latin1")));
    }
    return this.#result();
  }

  /** Every other time one of the last that reached something new. */
  #chosen(): Buffer {
    const { length } = this.#inputs;
    const among = this.#random() < 0.5 ? Math.min(length, inputsPerLook) : length;
    return this.#inputs[length - 1 - Math.floor(this.#random() * among)] ?? Buffer.alloc(0);
  }

  #isNew(): boolean {
    const coverage = coverageOf(this.#target.files);
    const isNew = coverage !== this.#coverage;
    this.#coverage = coverage;
    return isNew;
  }

  async #run(input: Buffer): Promise<string | undefined> {
    this.#runs++;
    try {
      await examine(this.#target, input, this.#random);
      return undefined;
    } catch (error) {
      return error instanceof Error ? `${error.name}: ${error.message}\n${error.stack ?? ""}` : String(error);
    }
  }

  /** The same fault with less of the input, as far as that is found by taking parts out. */
  async #reduced(input: Buffer, message: string): Promise<Fault> {
    let [smallest, fault] = [input, message];
    for (let size = input.length >> 1; size > 0; size >>= 1) {
      for (let at = 0; at + size <= smallest.length; ) {
        const less = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)]);
        const again = await this.#run(less);
        if (again === undefined) at += size;
        else [smallest, fault] = [less, again];
      }
    }
    return { input: JSON.stringify(smallest.toString("latin1")), message: fault };
  }

  #result(fault?: Fault | string): FuzzResult {
    const result = { runs: this.#runs, found: this.#found };
    if (fault === undefined) return result;
    return { ...result, fault: typeof fault === "string" ? { input: "of the corpus", message: fault } : fault };
  }
}

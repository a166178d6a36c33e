// A second context for whole texts, beside that of the generations. It is created at the first request if memory
// allows, and used by one request at a time.
import { availableMemoryBytes } from "../../machine-memory.ts";
import type { ModelRuntime } from "../runtime.ts";

const largestContext = 8192;
const smallestContext = 256;

/** The tokens of the context and of one batch, and the number of threads. */
export interface SideContextSize {
  contextSize: number;
  batchSize: number;
  threads: number;
}

export class SideContext<Context> {
  readonly #runtime: ModelRuntime;
  readonly #make: (size: SideContextSize) => Promise<Context>;
  #context: Promise<Context> | undefined;
  #limit = 0;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(runtime: ModelRuntime, make: (size: SideContextSize) => Promise<Context>) {
    this.#runtime = runtime;
    this.#make = make;
  }

  /** The most tokens that the context accepts at once, known once it is open. */
  get limit(): number {
    return this.#limit;
  }

  open(): Promise<Context> {
    this.#context ??= this.#create().catch((error: unknown) => {
      // Memory that is short now may be free at the next request.
      this.#context = undefined;
      throw error;
    });
    return this.#context;
  }

  async inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#queue.then(work);
    this.#queue = turn.catch(() => undefined);
    return await turn;
  }

  async #create(): Promise<Context> {
    const { model, threads } = this.#runtime;
    let limit = Math.min(model.trainContextSize, largestContext);
    while (limit > smallestContext && !(await this.#fits(limit))) limit >>= 1;
    // The whole text must be one batch, since pooling sees only that. The library keeps one token free.
    const context = await this.#make({ contextSize: limit + 1, batchSize: limit + 1, threads });
    this.#limit = limit;
    return context;
  }

  async #fits(limit: number): Promise<boolean> {
    const { model } = this.#runtime;
    const { cpuRam } = await model.fileInsights.estimateContextResourceRequirementsV2({
      contextSize: limit + 1,
      batchSize: limit + 1,
      modelGpuLayers: model.gpuLayers,
      isEmbeddingContext: true,
    });
    return cpuRam <= availableMemoryBytes() / 2;
  }
}

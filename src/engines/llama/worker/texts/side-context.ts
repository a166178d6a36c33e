// A second llama.cpp context, for embeddings or ranking. It is created at the first request, and used by one
// request at a time.
import { availableMemoryBytes } from "../../machine-memory.ts";
import type { ModelRuntime } from "../runtime.ts";

const largestContext = 8192;
const smallestContext = 256;

/** The number of tokens of the context and of a batch, and the number of threads. */
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

  /** The most tokens of one text. Known once the context is open. */
  get limit(): number {
    return this.#limit;
  }

  open(): Promise<Context> {
    this.#context ??= this.#create().catch((error: unknown) => {
      // There may be enough memory at the next request, so the failure is not kept.
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
    // The whole text must fit into one batch, because pooling reads only one. The library reserves one token.
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

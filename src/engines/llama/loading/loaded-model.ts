// A model of the built-in engine. Its memory is reserved before its process starts and released after the process ends.
import { exactMs } from "../../../base/clock.ts";
import { GatewayError } from "../../../base/errors.ts";
import type { Log } from "../../../base/log.ts";
import type { EngineModel, OnDemand } from "../../../domain/models/engine.ts";
import type { ModelProcessState } from "../../../domain/models/model-process-state.ts";
import type { Amounts } from "../../memory/amounts.ts";
import { type Lease, type MemoryBudget, NeverFits, type Tenant } from "../../memory/budget.ts";
import { formatBytes } from "../byte-size.ts";
import { Slots } from "../slots.ts";
import type { WorkerProcess, WorkerReady } from "../worker-process.ts";

export interface LoadedModelOptions {
  id: string;
  /** True if the model is loaded at the server's start and never unloaded. */
  pinned: boolean;
  budget: MemoryBudget;
  log: Log;
  /** The number of slots to assume until the process reports its own. */
  slots: number;
  /** Returns the memory to reserve for the model. */
  amounts(): Amounts;
  /** Creates the model's process, without starting it. */
  worker(onReady: (ready: WorkerReady) => void, onFailed: () => void): WorkerProcess;
  /** Called once the process is ready. Resolves once the model's facts have been read. */
  onReady(ready: WorkerReady): Promise<void>;
  /** Called once waiting requests may continue: the model accepts requests, or has failed. */
  onOpen(): void;
}

/** The slots for embeddings: one request computes, and one is ready to follow. */
const embeddingSlots = 2;
/** The time for which a model that did not fit or load is not tried again, whatever requests arrive. */
const restMs = 15_000;

interface Demand {
  inFlight: number;
  waiting: number;
}

export class LoadedModel implements Tenant {
  readonly slots: Slots;
  /** Embeddings use a separate context in the worker, so they have slots of their own. */
  readonly embeddingSlots = new Slots(embeddingSlots);
  facts: EngineModel | undefined;
  readonly #options: LoadedModelOptions;
  readonly #demands: [generation: Demand, embedding: Demand] = [
    { inFlight: 0, waiting: 0 },
    { inFlight: 0, waiting: 0 },
  ];
  #worker: WorkerProcess | undefined;
  #lease: Lease | undefined;
  #claim: AbortController | undefined;
  #state: "off" | "waiting" | "loading" | "loaded" | "leaving" | "failed" = "off";
  #refusal: GatewayError | undefined;
  #holders = 0;
  /** Resolvers of requests that wait in `ready` for the model to load or fail. */
  readonly #arrivals = new Set<() => void>();
  #idleMs = exactMs();
  #yielding = false;
  #gone: Promise<void> = Promise.resolve();
  #rest: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(options: LoadedModelOptions) {
    this.#options = options;
    this.slots = new Slots(options.slots);
  }

  get name(): string {
    return this.#options.id;
  }

  get pinned(): boolean {
    return this.#options.pinned;
  }

  get worker(): WorkerProcess | undefined {
    return this.#worker;
  }

  /** The number of the model's running requests. */
  get inFlight(): number {
    return Math.max(this.#holders, this.#demands[0].inFlight + this.#demands[1].inFlight);
  }

  get #waiting(): number {
    return this.#demands[0].waiting + this.#demands[1].waiting + this.#arrivals.size;
  }

  /**
   * The monotonic milliseconds since which the model is idle, or undefined. If requests may be sent, a waiting
   * request counts as running, because it gets a slot soon.
   */
  get idleSinceMs(): number | undefined {
    return this.inFlight > 0 || (this.#waiting > 0 && this.open) ? undefined : this.#idleMs;
  }

  /** Always undefined, because the process of a built-in model cannot sleep: it is in memory, or gone. */
  get asleep(): undefined {
    return undefined;
  }

  /** True if requests may be sent. Also true for a failed model, so that waiting requests get its error. */
  get open(): boolean {
    return (this.#state === "loaded" && !this.#yielding) || this.#state === "failed";
  }

  get state(): ModelProcessState {
    return this.#state === "leaving" ? "stopping" : this.#state;
  }

  /** The number of the model's running and waiting requests. */
  get inUse(): number {
    return this.inFlight + this.#waiting;
  }

  /** Returns the scheduler's view of the model: for generation, or for embeddings. */
  demandOf(generates: boolean): OnDemand {
    const demand = this.#demands[generates ? 0 : 1];
    const isOpen = () => this.open;
    return {
      get open() {
        return isOpen();
      },
      demand: (inFlight, waiting) => {
        if (inFlight < demand.inFlight) this.#idleMs = exactMs();
        Object.assign(demand, { inFlight, waiting });
        // The state is checked in a microtask, because the caller is still assigning slots to requests.
        queueMicrotask(() => this.#check());
      },
    };
  }

  /** Counts a request as running, until the returned function is called. */
  hold(): () => void {
    this.#holders++;
    return () => {
      this.#holders--;
      this.#idleMs = exactMs();
      this.#check();
    };
  }

  /**
   * Loads the model if necessary, and resolves once its process accepts requests. Call `hold` first, so that the
   * model is not unloaded.
   */
  async ready(signal: AbortSignal): Promise<{ worker: WorkerProcess; ready: WorkerReady }> {
    while (this.#state !== "loaded" && this.#state !== "failed") await this.#arrival(signal);
    const worker = this.#worker;
    if (this.#state === "failed" || !worker) throw this.#refusal ?? stopped(this.name);
    return { worker, ready: await worker.ready(signal) };
  }

  /** Begins to load the model, whether requests wait or not. */
  load(): void {
    if (this.#state === "off" && !this.#closed) void this.#start();
  }

  yields(on: boolean): void {
    this.#yielding = on;
    if (this.open) this.#options.onOpen();
  }

  leave(): void {
    void this.#stop();
  }

  /** Removes the model from memory if no request uses it. */
  async unload(): Promise<void> {
    if (this.#state !== "loaded" || this.inFlight > 0 || this.#lease?.mayLeave === false) return;
    this.#lease?.leaves("gone");
    await this.#stop();
  }

  /** The milliseconds since the last request ended, or 0 while one is running. */
  get idleForMs(): number {
    return this.inFlight > 0 ? 0 : exactMs() - this.#idleMs;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#rest);
    this.#claim?.abort(stopped(this.name));
    if (this.#worker) await this.#stop();
    await this.#gone;
  }

  #arrival(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#closed) throw stopped(this.name);
    return new Promise((resolve, reject) => {
      const arrive = () => {
        this.#arrivals.delete(arrive);
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        this.#arrivals.delete(arrive);
        reject(signal.reason);
        this.#check();
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#arrivals.add(arrive);
      this.#check();
    });
  }

  #check(): void {
    const isWaitedFor = this.#waiting > 0;
    if (this.#state === "off" && isWaitedFor) this.load();
    else if (this.#state === "waiting" && !isWaitedFor && !this.pinned) this.#claim?.abort(stopped(this.name));
    else if (this.#state === "loaded" && this.inFlight === 0) this.#options.budget.changed();
  }

  async #start(): Promise<void> {
    const { budget, amounts, worker, log } = this.#options;
    this.#state = "waiting";
    this.#claim = new AbortController();
    try {
      this.#lease = await budget.claim(this, amounts(), this.#claim.signal);
    } catch (error) {
      if (error instanceof NeverFits) this.#fail(neverFits(this.name, error));
      else this.#set("off");
      return;
    }
    if (this.#closed) {
      this.#lease.release();
      return;
    }
    this.#state = "loading";
    const made = worker(
      (ready) => void this.#becameReady(made, ready),
      () => void this.#workerFailed(made),
    );
    this.#worker = made;
    log.info("engine_loading", { model: this.name, bytes: this.#lease.amounts["ram"] });
    made.start();
  }

  async #becameReady(worker: WorkerProcess, ready: WorkerReady): Promise<void> {
    this.slots.resize(ready.parallel);
    await this.#options.onReady(ready);
    if (this.#worker !== worker || this.#state !== "loading") return;
    this.#idleMs = exactMs();
    // Waiting requests get their slots first, so that the memory budget does not see an idle model and unload it.
    this.#set("loaded");
    this.#lease?.loaded();
  }

  /** Handles a process that could not load the model. */
  async #workerFailed(worker: WorkerProcess): Promise<void> {
    if (this.#worker !== worker) return;
    const error = worker.loadError();
    await this.#end(worker);
    this.#fail(error);
  }

  async #stop(): Promise<void> {
    const worker = this.#worker;
    if (!worker) return;
    this.#state = "leaving";
    this.#options.log.info("engine_unloaded", { model: this.name });
    this.#gone = this.#end(worker);
    await this.#gone;
    this.#set("off");
  }

  async #end(worker: WorkerProcess): Promise<void> {
    this.#worker = undefined;
    const lease = this.#lease;
    this.#lease = undefined;
    await worker.close();
    lease?.release();
  }

  #fail(error: GatewayError): void {
    this.#refusal = error;
    this.#options.log.error("engine_failed", { model: this.name, detail: error.detail ?? error.message });
    this.#set("failed");
    this.#rest = setTimeout(() => this.#set("off"), restMs);
    this.#rest.unref();
  }

  #set(state: "off" | "loaded" | "failed"): void {
    this.#state = state;
    if (state === "off") this.#yielding = false;
    for (const arrive of [...this.#arrivals]) arrive();
    if (this.open) this.#options.onOpen();
    if (!this.#closed) this.#check();
  }
}

function stopped(id: string): GatewayError {
  return new GatewayError("service_unavailable", `The model ${id} has just been unloaded. Retry in 2 s.`, {
    retryAfterSeconds: 2,
  });
}

function neverFits(id: string, { pool, needed, total, pinned }: NeverFits): GatewayError {
  const beside = pinned > 0 ? `, of which ${formatBytes(pinned)} are held by models that are kept` : "";
  const where = pool === "ram" ? "memory" : `the memory of ${pool}`;
  const detail = `it needs ${formatBytes(needed)} of ${where}, and models may have ${formatBytes(total)}${beside}`;
  const message = `The model \`${id}\` does not fit into the memory of this server.`;
  return new GatewayError("service_unavailable", message, { detail, retryAfterSeconds: restMs / 1000 });
}

// The built-in engine: serves the GGUF models of this machine, each in a separate process.

import type { Cancellation } from "../../base/cancellation.ts";
import { fieldError, GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Environment } from "../../domain/api-key.ts";
import type { Capabilities } from "../../domain/models/capabilities.ts";
import {
  builtInEngineName,
  type ChatContinuation,
  type CountRequest,
  type Engine,
  type EngineModel,
  type EngineRequest,
  type EngineResponse,
  type OnDemand,
} from "../../domain/models/engine.ts";
import type { HeldMemory, MemoryNeed, ModelMemory } from "../../domain/models/memory-need.ts";
import type { ModelProcessState } from "../../domain/models/model-process-state.ts";
import { generates, isTask, type Operation, operationPaths } from "../../domain/models/operation.ts";
import { type ModelUse, modelUse } from "../../domain/models/pulled-model.ts";
import { type HttpTarget, httpTarget, postJson } from "../http-engine.ts";
import { type Amounts, amountOf, isGpu, ramPool } from "../memory/amounts.ts";
import type { MemoryBudget } from "../memory/budget.ts";
import { getModels } from "../model-list.ts";
import { TokenCounter } from "../token-count.ts";
import { WatchedBody } from "../watched-body.ts";
import { LoadedModel } from "./loading/loaded-model.ts";
import { availableMemoryBytes } from "./machine-memory.ts";
import { WorkerProcess, type WorkerReady } from "./worker-process.ts";

/** A GGUF file to serve. */
export interface LlamaModel {
  id: string;
  path: string;
  ownedBy: string;
  /** The environments that may use the model. Undefined for the default of discovered models. */
  environments?: readonly Environment[];
  /** The capabilities and the context that are known before loading. */
  capabilities?: Capabilities;
  context?: number;
  /**
   * Returns the memory that the model needs, reduced to fit into `roomBytes` if possible. Left out if the model's file
   * is missing.
   */
  memory?(roomBytes: number): MemoryNeed;
  /**
   * True if the model is loaded at the server's start and never unloaded. Other models load at their first
   * request and unload when idle.
   */
  eager: boolean;
}

export interface LlamaEngineOptions {
  /** Returns the current models. Called again at each refresh of the catalog. */
  models(): Promise<readonly LlamaModel[]>;
  context: number | undefined;
  parallel: number | undefined;
  threads: number | undefined;
  gpu: false | "auto";
  libraryPath: string | undefined;
  /** The memory budget, shared with the commands that run models on this machine. */
  budget: MemoryBudget;
  log: Log;
  /** Called when a model becomes ready, because its capabilities are known from then on. */
  onReady(): void;
  /** Called when a model accepts requests, so that waiting requests may continue. */
  onOpen(): void;
}

/** The operations besides chats, completions and embeddings that the built-in engine supports. */
const ownTasks: ReadonlySet<Operation> = new Set(["rerank", "score", "tokenize", "detokenize"]);
const unloadAfterMs = 10 * 60_000;
/** The number of slots to assume until the worker reports its own. Most models have this many. */
const slotsBeforeReady = 4;
/** The slots for embeddings: one request computes, and one is ready to follow. */
const embeddingSlots = 2;
/** The longest wait for data from a worker. A long prompt takes minutes. */
const silenceTimeoutMs = 10 * 60_000;

export class LlamaEngine implements Engine {
  readonly name = builtInEngineName;
  readonly #options: LlamaEngineOptions;
  /** Every model that was ever requested. Models are never removed, because the scheduler keeps references to them. */
  readonly #loaded = new Map<string, LoadedModel>();
  #known = new Map<string, LlamaModel>();
  #unloader: ReturnType<typeof setInterval>;

  constructor(options: LlamaEngineOptions) {
    this.#options = options;
    this.#unloader = setInterval(() => this.#unloadIdle(), unloadAfterMs / 10);
  }

  /** Begins to load the eager models of the last model list. */
  start(): void {
    for (const { id, eager } of this.#known.values()) if (eager) this.#modelOf(id).load();
  }

  async models(): Promise<EngineModel[]> {
    await this.#readModels();
    return [...this.#known.values()].map((model) => {
      const facts = this.#loaded.get(model.id)?.facts;
      const capabilities = facts?.capabilities ?? model.capabilities;
      const context = facts?.context ?? model.context;
      return {
        id: model.id,
        ownedBy: model.ownedBy,
        ...(capabilities ? { capabilities } : {}),
        ...(context === undefined ? {} : { context }),
        ...(model.environments ? { environments: model.environments } : {}),
      };
    });
  }

  /**
   * Returns the number of slots for an operation. An unloaded model has slots too, because requests get them
   * before it loads.
   */
  concurrency(model: string, operation: Operation): number {
    if (!generates[operation]) return embeddingSlots;
    const loaded = this.#loaded.get(model);
    return loaded?.worker ? loaded.slots.total : (this.#options.parallel ?? slotsBeforeReady);
  }

  onDemandFor(model: string, operation: Operation): OnDemand {
    return this.#modelOf(model).demandOf(generates[operation]);
  }

  continues(): ChatContinuation {
    return "last_message";
  }

  /** Counts the tokens of a prompt. Loads the model if necessary, because the caller will send the prompt next. */
  async countTokens(request: CountRequest, cancellation: Cancellation): Promise<number | undefined> {
    if (!this.#known.has(request.model)) return undefined;
    const model = this.#modelOf(request.model);
    const leave = model.hold();
    try {
      const { ready } = await model.ready(cancellation.signal);
      return await new TokenCounter(targetOf(ready)).count(request, cancellation);
    } finally {
      leave();
    }
  }

  async send(request: EngineRequest, cancellation: Cancellation): Promise<EngineResponse> {
    const id = request.model;
    if (!this.#known.has(id)) {
      throw new GatewayError("upstream_error", `The built-in engine no longer has the model \`${id}\`.`);
    }
    if (isTask(request.operation) && !ownTasks.has(request.operation)) {
      throw fieldError(
        "model",
        `\`${id}\` runs on the built-in engine, which has no ${operationPaths[request.operation]}.`,
      );
    }
    const model = this.#modelOf(id);
    const leave = model.hold();
    let freeSlots: () => void;
    try {
      await model.ready(cancellation.signal);
      const slots = generates[request.operation] ? model.slots : model.embeddingSlots;
      freeSlots = await slots.acquire(request.width, cancellation.signal);
    } catch (error) {
      leave();
      throw error;
    }
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      freeSlots();
      leave();
    };
    let sent: { worker: WorkerProcess; ready: WorkerReady } | undefined;
    const failed = (error: unknown): unknown => {
      // The process is marked as suspect before the slot is released, so that the next request does not use a
      // dying process.
      if (sent && !cancellation.cancelled) sent.worker.suspect(sent.ready);
      release();
      return cancellation.cancelled ? error : asEngineFault(error);
    };
    try {
      // The process may have crashed while this request waited for a slot.
      sent = await model.ready(cancellation.signal);
      const response = await postJson(targetOf(sent.ready), request, cancellation);
      return { ...response, body: new WatchedBody(response.body, { over: release, failed }) };
    } catch (error) {
      throw failed(error);
    }
  }

  use(id: string): ModelUse {
    const model = this.#loaded.get(id);
    return modelUse(model?.state ?? "off", model?.inUse ?? 0);
  }

  /** Returns the state of a model's process. Undefined for an eager model. */
  processState(id: string): ModelProcessState | undefined {
    if (this.#known.get(id)?.eager !== false) return undefined;
    return this.#loaded.get(id)?.state ?? "off";
  }

  /** Returns the models that hold memory, whether this engine or a command runs them. */
  held(): HeldMemory[] {
    return this.#options.budget.view().held.map(({ name, amounts, state, pinned, idle }) => {
      const own = this.#loaded.get(name)?.inUse;
      return { id: name, bytes: amountOf(amounts, ramPool), state, inUse: own ?? (idle ? 0 : 1), pinned };
    });
  }

  memory(): ModelMemory {
    const { pools, held } = this.#options.budget.view();
    const ram = pools.find(({ pool }) => pool === ramPool);
    const sumOf = (some: typeof held) => some.reduce((sum, { amounts }) => sum + amountOf(amounts, ramPool), 0);
    const unused = (ram?.total ?? 0) - (ram?.used ?? 0);
    return {
      total: ram?.total ?? 0,
      free: Math.max(0, Math.min(unused, availableMemoryBytes())),
      evictable: sumOf(held.filter(({ pinned, idle, state }) => !pinned && idle && state === "loaded")),
      pinned: sumOf(held.filter(({ pinned }) => pinned)),
    };
  }

  redact(text: string): string {
    return text;
  }

  async close(): Promise<void> {
    clearInterval(this.#unloader);
    await Promise.all([...this.#loaded.values()].map((model) => model.close()));
  }

  /** Returns the state of each model that has a process, for tests. */
  status(): { id: string; state: string; pid: number | undefined; busy: number; waiting: number }[] {
    return [...this.#loaded.values()].flatMap(({ name, worker, slots }) =>
      worker ? [{ id: name, state: worker.state, pid: worker.pid, busy: slots.busy, waiting: slots.waiting }] : [],
    );
  }

  async #readModels(): Promise<void> {
    this.#known = new Map((await this.#options.models()).map((model) => [model.id, model]));
    // Deleted models are unloaded once no request uses them, which frees their memory and disk space.
    const gone = [...this.#loaded.values()].filter(({ name }) => !this.#known.has(name));
    await Promise.all(gone.map((model) => model.unload()));
  }

  #modelOf(id: string): LoadedModel {
    const known = this.#loaded.get(id);
    if (known) return known;
    const { budget, log, parallel, onOpen } = this.#options;
    const model: LoadedModel = new LoadedModel({
      ...{ id, budget, log, onOpen },
      pinned: this.#known.get(id)?.eager ?? false,
      slots: parallel ?? slotsBeforeReady,
      amounts: () => this.#amountsOf(this.#needOf(id)),
      worker: (onReady, onFailed) => this.#workerOf(id, onReady, onFailed),
      onReady: (ready) => this.#becameReady(model, ready),
    });
    this.#loaded.set(id, model);
    return model;
  }

  #workerOf(id: string, onReady: (ready: WorkerReady) => void, onFailed: () => void): WorkerProcess {
    const { context, parallel, threads, gpu, libraryPath, log } = this.#options;
    const need = this.#needOf(id);
    const options = {
      ...{ modelId: id, modelPath: this.#known.get(id)?.path ?? "", context, parallel, threads, gpu, libraryPath },
      most: need && { context: need.context, parallel: need.parallel },
    };
    return new WorkerProcess(options, log, onReady, onFailed);
  }

  /**
   * Returns the memory that a model needs, reduced to what the pinned models leave. Unpinned models can be
   * unloaded, so they do not count.
   */
  #needOf(id: string): MemoryNeed | undefined {
    const { total, pinned } = this.memory();
    const own = this.held().find((held) => held.id === id && held.pinned)?.bytes ?? 0;
    return this.#known.get(id)?.memory?.(total - pinned + own);
  }

  /**
   * Returns the memory to reserve. Before a load it is unknown how much goes to RAM and to each GPU, so the full
   * amount is reserved in each.
   */
  #amountsOf(need: MemoryNeed | undefined): Amounts {
    const { budget, gpu } = this.#options;
    const bytes = need?.bytes ?? 0;
    const gpus = gpu === false ? [] : budget.view().pools.filter(({ pool }) => isGpu(pool));
    return {
      [ramPool]: bytes,
      ...Object.fromEntries(gpus.map(({ pool, total }) => [pool, Math.min(bytes, total)])),
    };
  }

  async #becameReady(model: LoadedModel, ready: WorkerReady): Promise<void> {
    try {
      const [facts] = await getModels(targetOf(ready), AbortSignal.timeout(5_000));
      model.facts = facts;
    } catch {
      // The process died at once. Its supervisor handles that, and the next process reports the facts.
    }
    this.#options.onReady();
  }

  #unloadIdle(): void {
    for (const model of this.#loaded.values()) {
      if (!model.pinned && model.idleForMs > unloadAfterMs) void model.unload();
    }
  }
}

/** The HTTP target of each ready worker process. */
const targets = new WeakMap<WorkerReady, HttpTarget>();

function targetOf(ready: WorkerReady): HttpTarget {
  let target = targets.get(ready);
  if (!target) {
    target = httpTarget({
      name: builtInEngineName,
      url: "http://engine",
      unix: ready.socket,
      firstByteTimeoutMs: silenceTimeoutMs,
      idleTimeoutMs: silenceTimeoutMs,
    });
    targets.set(ready, target);
  }
  return target;
}

function asEngineFault(error: unknown): unknown {
  if (error instanceof GatewayError && error.code !== "upstream_error") return error;
  return new GatewayError(
    "upstream_error",
    "The built-in engine stopped while it worked on this request. It restarts by itself; send the request again.",
    { cause: error },
  );
}

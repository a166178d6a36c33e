// The built-in engine: every GGUF model of this machine, each in a process of its own, behind the engine port.

import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { exactMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Environment } from "../../domain/api-key.ts";
import type { Capabilities } from "../../domain/models/capabilities.ts";
import {
  builtInEngineName,
  type CountRequest,
  type Engine,
  type EngineModel,
  type EngineRequest,
  type EngineResponse,
} from "../../domain/models/engine.ts";
import type { HeldMemory, MemoryNeed, ModelMemory } from "../../domain/models/memory-need.ts";
import { generates, type Operation } from "../../domain/models/operation.ts";
import type { ModelUse } from "../../domain/models/pulled-model.ts";
import { type HttpTarget, httpTarget, postJson } from "../http-engine.ts";
import { getModels } from "../model-list.ts";
import { TokenCounter } from "../token-count.ts";
import { machineMemory } from "./machine-memory.ts";
import { Slots } from "./slots.ts";
import { WorkerProcess, type WorkerReady } from "./worker-process.ts";

/** A GGUF file to serve. */
export interface LlamaModel {
  id: string;
  path: string;
  ownedBy: string;
  /** Left out: those of any discovered model. */
  environments?: readonly Environment[];
  /** The facts that are known before it is loaded. */
  capabilities?: Capabilities;
  context?: number;
  /** Left out where its file cannot be read. */
  memory?: MemoryNeed;
  /** Loaded with the server, and kept; others are loaded by their first request and unloaded when idle. */
  eager: boolean;
}

export interface LlamaEngineOptions {
  /** The models of this moment; asked again whenever the catalog is refreshed. */
  models(): Promise<readonly LlamaModel[]>;
  context: number | undefined;
  parallel: number | undefined;
  threads: number | undefined;
  gpu: false | "auto";
  libraryPath: string | undefined;
  log: Log;
  /** A model became ready: what it can do is known now. */
  onReady(): void;
}

interface Loaded {
  model: LlamaModel;
  worker: WorkerProcess;
  slots: Slots;
  /** Embeddings have a context of their own in the worker, so they do not take the places of chats. */
  embeddingSlots: Slots;
  /** Requests that wait for it or are with it. */
  inUse: number;
  lastUsedMs: number;
  facts: EngineModel | undefined;
}

/** Models loaded by a request, side by side, besides the eager ones. */
const maxLoadedOnDemand = 3;
const unloadAfterMs = 10 * 60_000;
/** Until the worker tells how many it takes; it chooses this many for most models. */
const slotsBeforeReady = 4;
/** One that computes, and one that is ready to follow. */
const embeddingSlots = 2;
/** A long prompt, or a model that thinks, may be silent for long. */
const silenceTimeoutMs = 10 * 60_000;

export class LlamaEngine implements Engine {
  readonly name = builtInEngineName;
  readonly #options: LlamaEngineOptions;
  readonly #loaded = new Map<string, Loaded>();
  #known = new Map<string, LlamaModel>();
  #unloader: ReturnType<typeof setInterval>;

  constructor(options: LlamaEngineOptions) {
    this.#options = options;
    this.#unloader = setInterval(() => void this.#unloadIdle(), unloadAfterMs / 10);
  }

  /** Begins to load the eager ones among the models of the last list. */
  start(): void {
    for (const model of this.#known.values()) if (model.eager) this.#load(model).worker.start();
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

  /** A model that has to be loaded first has its places already: who gets them is decided before it is ready. */
  concurrency(model: string, operation: Operation): number {
    if (!generates[operation]) return embeddingSlots;
    return this.#loaded.get(model)?.slots.total ?? this.#options.parallel ?? slotsBeforeReady;
  }

  /** A model that is not loaded is loaded for that: who counts a prompt is about to send it. */
  async countTokens(request: CountRequest, cancellation: Cancellation): Promise<number | undefined> {
    const model = this.#known.get(request.model);
    if (!model) return undefined;
    const entry = await this.#claim(model);
    try {
      const ready = await entry.worker.ready(cancellation.signal);
      return await new TokenCounter(targetOf(ready)).count(request, cancellation);
    } finally {
      entry.inUse--;
      entry.lastUsedMs = exactMs();
    }
  }

  async send(request: EngineRequest, cancellation: Cancellation): Promise<EngineResponse> {
    const id = request.model;
    const model = this.#known.get(id);
    if (!model) throw new GatewayError("upstream_error", `The built-in engine no longer has the model \`${id}\`.`);
    const entry = await this.#claim(model);
    const leave = () => {
      entry.inUse--;
      entry.lastUsedMs = exactMs();
    };
    let freeSlots: () => void;
    try {
      await entry.worker.ready(cancellation.signal);
      const slots = generates[request.operation] ? entry.slots : entry.embeddingSlots;
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
    let ready: WorkerReady | undefined;
    const failed = (error: unknown): unknown => {
      // Before the place is given on: the next one must not meet a process that is dying.
      if (ready && !cancellation.cancelled) entry.worker.suspect(ready);
      release();
      return cancellation.cancelled ? error : asEngineFault(error);
    };
    try {
      // It may have crashed while this request waited for its turn.
      ready = await entry.worker.ready(cancellation.signal);
      const response = await postJson(targetOf(ready), request, cancellation);
      return { ...response, body: new WatchedBody(response.body, release, failed) };
    } catch (error) {
      throw failed(error);
    }
  }

  use(id: string): ModelUse {
    const entry = this.#loaded.get(id);
    if (!entry) return { state: "unloaded", inUse: 0 };
    const { state } = entry.worker;
    const shown = state === "ready" ? "loaded" : state === "failed" ? "failed" : "loading";
    return { state: shown, inUse: entry.inUse };
  }

  held(): HeldMemory[] {
    return [...this.#loaded.values()].map(({ model }) => {
      const { state, inUse } = this.use(model.id);
      const bytes = model.memory?.bytes ?? 0;
      return { id: model.id, bytes, state: state === "unloaded" ? "leaving" : state, inUse, pinned: model.eager };
    });
  }

  memory(): ModelMemory {
    const idle = [...this.#loaded.values()].filter(({ model, inUse }) => !model.eager && inUse === 0);
    return {
      ...machineMemory(),
      evictable: idle.reduce((sum, { model }) => sum + (model.memory?.bytes ?? 0), 0),
    };
  }

  redact(text: string): string {
    return text;
  }

  async close(): Promise<void> {
    clearInterval(this.#unloader);
    await Promise.all([...this.#loaded.values()].map(({ worker }) => worker.close()));
  }

  /** States of the loaded models, for tests. */
  status(): { id: string; state: string; pid: number | undefined; busy: number; waiting: number }[] {
    return [...this.#loaded.values()].map(({ model, worker, slots }) => ({
      id: model.id,
      state: worker.state,
      pid: worker.pid,
      busy: slots.busy,
      waiting: slots.waiting,
    }));
  }

  async #readModels(): Promise<void> {
    this.#known = new Map((await this.#options.models()).map((model) => [model.id, model]));
    // What was deleted frees its memory, and its file on the disk, once nobody works with it.
    for (const entry of this.#loaded.values()) {
      if (entry.inUse === 0 && !this.#known.has(entry.model.id)) await this.#unload(entry);
    }
  }

  #load(model: LlamaModel): Loaded {
    const { context, parallel, threads, gpu, libraryPath, log } = this.#options;
    const options = { modelId: model.id, modelPath: model.path, context, parallel, threads, gpu, libraryPath };
    const entry: Loaded = {
      model,
      worker: new WorkerProcess(options, log, (ready) => void this.#becameReady(entry, ready)),
      slots: new Slots(parallel ?? slotsBeforeReady),
      embeddingSlots: new Slots(embeddingSlots),
      inUse: 0,
      lastUsedMs: exactMs(),
      facts: undefined,
    };
    this.#loaded.set(model.id, entry);
    return entry;
  }

  async #becameReady(entry: Loaded, ready: WorkerReady): Promise<void> {
    entry.slots.resize(ready.parallel);
    try {
      const [facts] = await getModels(targetOf(ready), AbortSignal.timeout(5_000));
      entry.facts = facts;
    } catch {
      // It died at once: the supervisor says so, and the facts come with its successor.
    }
    this.#options.onReady();
  }

  /** The model's entry, loaded if need be, counted as in use before anybody else could unload it. */
  async #claim(model: LlamaModel): Promise<Loaded> {
    for (;;) {
      const onDemand = [...this.#loaded.values()].filter((other) => !other.model.eager);
      const known = this.#loaded.get(model.id);
      if (known || onDemand.length < maxLoadedOnDemand) {
        const entry = known ?? this.#load(model);
        entry.inUse++;
        return entry;
      }
      const idle = onDemand.filter(({ inUse }) => inUse === 0);
      const oldest = idle.sort((a, b) => a.lastUsedMs - b.lastUsedMs)[0];
      if (!oldest) {
        const message = `${maxLoadedOnDemand} other models are loaded and busy. Retry in 10 s.`;
        throw new GatewayError("service_unavailable", message, { retryAfterSeconds: 10 });
      }
      await this.#unload(oldest);
    }
  }

  async #unloadIdle(): Promise<void> {
    for (const entry of this.#loaded.values()) {
      const idleMs = exactMs() - entry.lastUsedMs;
      if (!entry.model.eager && entry.inUse === 0 && idleMs > unloadAfterMs) await this.#unload(entry);
    }
  }

  async #unload(entry: Loaded): Promise<void> {
    this.#loaded.delete(entry.model.id);
    this.#options.log.info("engine_unloaded", { model: entry.model.id });
    await entry.worker.close();
  }
}

/** Each process has its own, as long as it lives. */
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

/** The body, unchanged; calls `release` when it is over, or `failed` for the error to give on. */
class WatchedBody implements BodySource {
  readonly #body: BodySource;
  readonly #release: () => void;
  readonly #failed: (error: unknown) => unknown;

  constructor(body: BodySource, release: () => void, failed: (error: unknown) => unknown) {
    this.#body = body;
    this.#release = release;
    this.#failed = failed;
  }

  flow(sink: BodySink): void {
    this.#body.flow({
      data: (bytes) => sink.data(bytes),
      end: () => {
        this.#release();
        sink.end();
      },
      fail: (error) => sink.fail(this.#failed(error)),
    });
  }

  pause(): void {
    this.#body.pause();
  }

  resume(): void {
    this.#body.resume();
  }

  cancel(): void {
    this.#release();
    this.#body.cancel();
  }
}

// Supervises the worker process of one model: starts it, waits until it is ready, and restarts it with back-off
// after a crash.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exactMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { selfCommand } from "../../installation/paths.ts";

export interface WorkerOptions {
  modelId: string;
  modelPath: string;
  /** The context of one sequence in tokens. If undefined, the worker chooses. */
  context: number | undefined;
  /** The number of parallel sequences. If undefined, the worker chooses. */
  parallel: number | undefined;
  threads: number | undefined;
  /** The largest context and number of sequences that the worker may choose. Undefined for no limit. */
  most: { context: number; parallel: number } | undefined;
  gpu: false | "auto";
  /** The path of another node-llama-cpp install, with a GPU back-end. */
  libraryPath: string | undefined;
}

/** The facts that a worker reports once it is ready. */
export interface WorkerReady {
  socket: string;
  context: number;
  parallel: number;
}

type State = "stopped" | "starting" | "ready" | "failed";

const firstRestartMs = 200;
const maxRestartMs = 30_000;
/** If a worker ran this long before it died, the back-off starts from the beginning. */
const stableMs = 60_000;
/** The time for which a model that failed to load is not tried again, whatever requests arrive. */
const retryFailedMs = 15_000;
/** The longest load. A large model on a slow disk takes minutes; after this time the worker is considered hung. */
const maxLoadMs = 15 * 60_000;
const stopGraceMs = 2_000;
const probeTimeoutMs = 2_000;
/**
 * The interval of health checks. A worker that does not answer one within `healthTimeoutMs` is killed, because
 * all its requests would hang.
 */
const healthEveryMs = 15_000;
const healthTimeoutMs = 20_000;
/** After this many deaths in a row while loading, the worker is started again only by the next request. */
const maxLoadDeaths = 5;

export class WorkerProcess {
  readonly #options: WorkerOptions;
  readonly #log: Log;
  readonly #onReady: (ready: WorkerReady) => void;
  readonly #onFailed: () => void;
  /** The private directory of the current process's socket. */
  #directory: string | undefined;
  #state: State = "stopped";
  #process: Bun.Subprocess<"pipe", "pipe", "pipe"> | undefined;
  #ready: WorkerReady | undefined;
  /** True once the current process was ready. */
  #wasReady = false;
  #waiting = new Set<{ resolve(ready: WorkerReady): void; reject(error: GatewayError): void }>();
  #failure = "";
  #failedAtMs = 0;
  #crashes = 0;
  #loadDeaths = 0;
  #restart: ReturnType<typeof setTimeout> | undefined;
  #generation = 0;
  #health: ReturnType<typeof setInterval> | undefined;

  /** `onFailed` is called if the model cannot be loaded; `loadError` returns the reason. */
  constructor(options: WorkerOptions, log: Log, onReady: (ready: WorkerReady) => void, onFailed: () => void) {
    this.#options = options;
    this.#log = log;
    this.#onReady = onReady;
    this.#onFailed = onFailed;
  }

  get state(): State {
    return this.#state;
  }

  /** The process id, for tests that kill it. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Starts the process unless it runs. Never throws: await `ready` for the result. */
  start(): void {
    if (this.#state === "starting" || this.#state === "ready") return;
    if (this.#state === "failed" && exactMs() - this.#failedAtMs < retryFailedMs) return;
    clearTimeout(this.#restart);
    this.#state = "starting";
    this.#launch().catch((error: unknown) => {
      // The process could not be created: no memory, or the installation is being replaced.
      this.#log.error("engine_not_started", { model: this.#options.modelId, detail: String(error) });
      this.#process = undefined;
      this.#crashed(undefined, exactMs());
    });
  }

  /**
   * Resolves once the process accepts requests, after starting it if necessary. Rejects if the model cannot be loaded.
   */
  ready(signal: AbortSignal): Promise<WorkerReady> {
    signal.throwIfAborted();
    if (this.#ready) return Promise.resolve(this.#ready);
    // During back-off, the request waits for the planned restart.
    if (this.#state !== "starting" && this.#restart === undefined) this.start();
    if (this.#state === "failed") return Promise.reject(this.loadError());
    return new Promise((resolve, reject) => {
      const waiter = {
        resolve: (ready: WorkerReady) => settle(() => resolve(ready)),
        reject: (error: GatewayError) => settle(() => reject(error)),
      };
      const onAbort = () => settle(() => reject(signal.reason));
      const settle = (done: () => void) => {
        this.#waiting.delete(waiter);
        signal.removeEventListener("abort", onAbort);
        done();
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(waiter);
    });
  }

  /**
   * Call this after a connection broke unexpectedly, as the process is probably dying. New requests wait until
   * it is restarted, or answers a health check.
   */
  suspect(ready: WorkerReady): void {
    if (this.#ready !== ready) return;
    this.#ready = undefined;
    this.#state = "starting";
    void this.#probe(ready, probeTimeoutMs);
  }

  /** Checks a worker's health, and kills the process if it does not answer. */
  async #probe(ready: WorkerReady, timeoutMs: number): Promise<void> {
    const generation = this.#generation;
    const alive = await fetch("http://engine/health", { unix: ready.socket, signal: AbortSignal.timeout(timeoutMs) })
      .then((response) => response.ok)
      // If this process has no free file descriptors, the check says nothing about the worker.
      .catch((error: { name?: string; code?: string }) => error.code === "EMFILE" || error.code === "ENFILE");
    if (generation !== this.#generation || this.#process === undefined) return;
    if (!alive) this.#process.kill("SIGKILL");
    else if (this.#ready === undefined) this.#announce(ready);
  }

  #announce(ready: WorkerReady): void {
    this.#state = "ready";
    this.#ready = ready;
    for (const waiter of this.#waiting) waiter.resolve(ready);
  }

  /** Stops the process until the next `start`. Kills a worker that does not end. */
  async stop(): Promise<void> {
    this.#generation++;
    clearInterval(this.#health);
    clearTimeout(this.#restart);
    this.#restart = undefined;
    this.#state = "stopped";
    this.#ready = undefined;
    const child = this.#process;
    this.#process = undefined;
    if (child && child.exitCode === null) {
      child.kill("SIGTERM");
      const killer = setTimeout(() => child.kill("SIGKILL"), stopGraceMs);
      await child.exited;
      clearTimeout(killer);
    }
  }

  async close(): Promise<void> {
    await this.stop();
    for (const waiter of this.#waiting)
      waiter.reject(new GatewayError("service_unavailable", "Headrace is shutting down."));
    this.#removeDirectory();
  }

  /** Each process gets a new directory, because systems delete old directories from their temporary files. */
  #newDirectory(): string {
    this.#removeDirectory();
    this.#directory = mkdtempSync(join(tmpdir(), "headrace-engine-"));
    return this.#directory;
  }

  #removeDirectory(): void {
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true });
    this.#directory = undefined;
  }

  async #launch(): Promise<void> {
    const generation = ++this.#generation;
    this.#wasReady = false;
    const socket = join(this.#newDirectory(), "engine.sock");
    const startedMs = exactMs();
    const { modelId } = this.#options;
    const child = Bun.spawn([...selfCommand("run-model"), JSON.stringify({ ...this.#options, socket })], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#process = child;
    void forLines(child.stderr, (line) => this.#log.warn("engine", { model: modelId, detail: line.slice(0, 500) }));
    let failure: string | undefined;
    const loadLimit = setTimeout(() => {
      failure = `the model was not loaded within ${maxLoadMs / 60_000} minutes`;
      child.kill("SIGKILL");
    }, maxLoadMs);
    await forLines(child.stdout, (line) => {
      const message = parseReady(line);
      if (!message || generation !== this.#generation) return;
      if ("error" in message) failure = message.error;
      else {
        clearTimeout(loadLimit);
        this.#becomeReady({ ...message, socket }, startedMs);
      }
    });
    await child.exited;
    clearTimeout(loadLimit);
    if (generation !== this.#generation) return;
    this.#ready = undefined;
    clearInterval(this.#health);
    this.#process = undefined;
    rmSync(socket, { force: true });
    // If the worker reported why the model cannot be loaded, no restart would help. Any other end is a crash.
    if (failure !== undefined) this.#failed(failure);
    else this.#crashed(child, startedMs);
  }

  #becomeReady(ready: WorkerReady, startedMs: number): void {
    this.#wasReady = true;
    const { modelId: model } = this.#options;
    const { context, parallel } = ready;
    this.#log.info("engine_ready", { model, context, parallel, ms: Math.round(exactMs() - startedMs) });
    this.#announce(ready);
    this.#health = setInterval(() => void this.#probe(ready, healthTimeoutMs), healthEveryMs);
    this.#onReady(ready);
  }

  #crashed(child: Bun.Subprocess | undefined, startedMs: number): void {
    if (this.#wasReady && exactMs() - startedMs > stableMs) this.#crashes = 0;
    this.#loadDeaths = this.#wasReady ? 0 : this.#loadDeaths + 1;
    if (this.#loadDeaths >= maxLoadDeaths) {
      this.#loadDeaths = 0;
      this.#failed(`the engine process died ${maxLoadDeaths} times while it loaded the model`);
      return;
    }
    const delayMs = Math.min(firstRestartMs * 2 ** this.#crashes, maxRestartMs);
    this.#crashes++;
    this.#state = "stopped";
    const { modelId: model } = this.#options;
    this.#log.error("engine_crashed", {
      model,
      exit_code: child?.exitCode,
      signal: child?.signalCode,
      restart_ms: delayMs,
    });
    this.#restart = setTimeout(() => {
      this.#restart = undefined;
      this.start();
    }, delayMs);
  }

  #failed(reason: string): void {
    this.#state = "failed";
    this.#failure = reason;
    this.#failedAtMs = exactMs();
    for (const waiter of this.#waiting) waiter.reject(this.loadError());
    this.#onFailed();
  }

  /** Returns an error with the reason of the worker's last failure. */
  loadError(): GatewayError {
    const { modelId } = this.#options;
    return new GatewayError(
      "service_unavailable",
      `The model \`${modelId}\` could not be loaded; the log of the server says why.`,
      {
        detail: this.#failure,
        retryAfterSeconds: Math.ceil(retryFailedMs / 1000),
      },
    );
  }
}

function parseReady(line: string): Omit<WorkerReady, "socket"> | { error: string } | undefined {
  try {
    const message = JSON.parse(line) as { ready?: unknown; error?: unknown; context?: unknown; parallel?: unknown };
    if (message.ready === false) return { error: String(message.error) };
    if (message.ready !== true) return undefined;
    return { context: Number(message.context), parallel: Number(message.parallel) };
  } catch {
    return undefined;
  }
}

async function forLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") onLine(line);
  }
  if (rest.trim() !== "") onLine(rest);
}

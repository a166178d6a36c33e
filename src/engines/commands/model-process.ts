// The lifecycle of one command: off, waiting for memory, loading, loaded, asleep, stopping or failed. Requests
// start it.
import { exactMs, wallMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { NotRunningError, type OnDemand } from "../../domain/models/engine.ts";
import type { ModelProcessFigures } from "../../domain/models/model-process.ts";
import type { ModelProcessState } from "../../domain/models/model-process-state.ts";
import { howItEnded } from "../../processes/guard.ts";
import { markOf } from "../../processes/orphans.ts";
import type { Output } from "../../processes/output.ts";
import { type Amounts, gpuPool, groupPool, isMemory, ramPool, sum } from "../memory/amounts.ts";
import { type Lease, type MemoryBudget, NeverFits, type Tenant } from "../memory/budget.ts";
import type { Leaving } from "../memory/plan.ts";
import { ServerRun } from "./server-run.ts";
import type { CommandSettings } from "./settings.ts";
import { fallAsleep, wakeUp } from "./sleep.ts";

export interface ModelProcessOptions {
  settings: CommandSettings;
  budget: MemoryBudget;
  output: Output;
  environment: Readonly<Record<string, string | undefined>>;
  dataDir: string;
  log: Log;
  /** Returns the memory to reserve for the command: configured, measured or estimated. */
  memory(): Amounts;
  /** Called once the model server accepts requests. Resolves once its models and memory have been read. */
  onReady(run: ServerRun): Promise<void>;
  /** Called once waiting requests may continue: the server accepts requests, or has failed. */
  onOpen(): void;
  /** The time between SIGTERM and SIGKILL. Tests use a shorter one. */
  stopMs?: number | undefined;
}

const firstRetryMs = 500;
const maxRetryMs = 30_000;
/** After this many failures in a row, waiting requests get an error. */
const maxFailures = 3;
/** The time for which a failed command is not started again, whatever requests arrive. */
const restMs = 15_000;
/** If a model server ran this long before it died, the back-off starts from the beginning. */
const stableMs = 60_000;
/** After the server has closed a connection, the longest wait for its process to end. */
const goneMs = 5_000;
/** The delay before an idle command tries to stop again. It may not stop while another model loads on the same GPU. */
const stayMs = 1_000;
/** The longest timer, because timers are limited to about 24 days. Longer idle times take several timers. */
const maxTimerMs = 86_400_000;

export class ModelProcess implements Tenant, OnDemand {
  pinned: boolean;
  readonly #options: ModelProcessOptions;
  readonly #startId = crypto.randomUUID();
  #state: ModelProcessState = "off";
  #since = Math.floor(wallMs() / 1000);
  #lease: Lease | undefined;
  #run: ServerRun | undefined;
  #claim: AbortController | undefined;
  #inFlight = 0;
  #waiting = 0;
  /** The monotonic time since which no request is running, in milliseconds. */
  #idleMs = exactMs();
  /**
   * True while another model needs this command's memory. `#unloading` is true while an operator wants the
   * command stopped. In both cases the command accepts no new requests.
   */
  #yielding = false;
  #unloading = false;
  /** True if an operator or the configuration wants the command loaded, whether requests wait or not. */
  #wanted = false;
  #closed = false;
  #isChecking = false;
  #failures = 0;
  #failure = "";
  /** False if the command needs more memory than it can ever get. */
  #fits = true;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #loadedMs = 0;
  #counts = { starts: 0, evictions: 0, failures: 0, loadSeconds: 0 };

  constructor(options: ModelProcessOptions) {
    this.#options = options;
    this.pinned = options.settings.pinned;
  }

  get name(): string {
    return this.#options.settings.name;
  }

  /**
   * The monotonic milliseconds since which the command is idle, or undefined. If requests may be sent, a waiting
   * request counts as running, because it gets a slot soon.
   */
  get idleSinceMs(): number | undefined {
    return this.#inFlight > 0 || (this.#waiting > 0 && this.open) ? undefined : this.#idleMs;
  }

  /** True if requests may be sent. Also true for a failed command, so that waiting requests get its error. */
  get open(): boolean {
    return (this.#state === "loaded" && !this.#yielding && !this.#unloading) || this.#state === "failed";
  }

  /** Returns the server process that accepts requests, or undefined. */
  get serving(): ServerRun | undefined {
    return this.#state === "loaded" ? this.#run : undefined;
  }

  get asleep(): Amounts | undefined {
    const { asleepGpu } = this.#options.settings;
    if (!asleepGpu || !this.#lease) return undefined;
    const gpu = Object.entries(asleepGpu).map(([index, bytes]) => [gpuPool(Number(index)), bytes] as const);
    return { [ramPool]: this.#lease.amounts[ramPool] ?? 0, ...Object.fromEntries(gpu) };
  }

  figures(): ModelProcessFigures {
    return {
      state: this.#state,
      since: this.#since,
      failure: this.#failure === "" ? null : this.#failure,
      pinned: this.pinned,
      memory: this.#lease?.amounts ?? this.#amounts,
      inFlight: this.#inFlight,
      waiting: this.#waiting,
      ...this.#counts,
    };
  }

  /** Loads the command at the gateway's start, if it is preloaded or pinned. */
  start(): void {
    if (this.#options.settings.preload || this.pinned) this.load();
  }

  /** Begins to load the command, whether requests wait or not. Retries a failed command. */
  load(): void {
    this.#wanted = true;
    this.#unloading = false;
    if (this.#state === "failed" || this.#state === "restarting") this.#rest();
    if (this.#state === "loaded") this.#wanted = false;
    // This call may have cancelled a planned stop, during which requests had to wait.
    if (this.open) this.#options.onOpen();
    this.#check();
  }

  /**
   * Unpins the command, and stops it once no request is running. If it is still loading, it stops immediately.
   * New requests start it again.
   */
  unload(): void {
    this.pinned = false;
    this.#wanted = false;
    this.#unloading = this.#run !== undefined;
    this.#check();
  }

  pin(on: boolean): void {
    this.pinned = on;
    if (on) this.load();
    else this.#check();
    this.#options.budget.changed();
  }

  demand(inFlight: number, waiting: number): void {
    if (inFlight === 0 && this.#inFlight > 0) this.#idleMs = exactMs();
    this.#inFlight = inFlight;
    this.#waiting = waiting;
    this.#checkSoon();
  }

  yields(on: boolean): void {
    this.#yielding = on;
    if (this.open) this.#options.onOpen();
  }

  leave(to: Leaving): void {
    this.#counts.evictions++;
    void (to === "asleep" ? this.#sleep() : this.#stop("evicted"));
  }

  /** Returns the error for a request that arrives while the command cannot answer. */
  refusal(): GatewayError {
    const hasFailed = this.#state === "failed";
    const retryAfterSeconds = hasFailed ? Math.ceil(restMs / 1000) : 2;
    const why = !hasFailed
      ? "has just stopped"
      : this.#fits
        ? "could not be started"
        : "needs more memory than there is for models, of which the server's log says more";
    const message = `The server of this model ${why}. Retry in ${retryAfterSeconds} s.`;
    const detail = `${this.name}: ${hasFailed ? this.#failure : this.#state}`;
    const Refusal = hasFailed ? GatewayError : NotRunningError;
    return new Refusal("service_unavailable", message, { detail, retryAfterSeconds });
  }

  /**
   * Handles the timeout of a request to this server process. `signs` is `run.signs` at the time when this
   * request last got data. If the server hangs, the process is stopped, so that the next request starts a new one.
   */
  async timedOut(run: ServerRun, signs: number): Promise<void> {
    if (!(await run.hangs(signs)) || this.#run !== run || this.#state !== "loaded") return;
    clearTimeout(this.#timer);
    this.#failure = "it hangs: a request timed out, and its ready path did not answer";
    this.#lease?.leaves("gone");
    this.#set("stopping");
    await run.stop();
  }

  /**
   * Reports whether the server process that closed a connection has ended. Waits a few seconds, because the
   * process may end later than its connection.
   */
  async hasEnded(run: ServerRun): Promise<boolean> {
    if (this.#run === run && this.#state === "loaded") await Promise.race([run.gone, Bun.sleep(goneMs)]);
    return this.#run !== run;
  }

  /** Updates the memory reservation after a new measurement. */
  resize(): void {
    if (this.#state === "loaded") this.#lease?.resize(this.#amounts);
  }

  /** Stops the command for good. Resolves once its process is gone. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#claim?.abort(new Error("closed"));
    await this.#run?.stop();
  }

  get #amounts(): Amounts {
    const { settings, memory } = this.#options;
    return settings.group === undefined ? memory() : sum(memory(), { [groupPool(settings.group)]: 1 });
  }

  /** Checks the state in a microtask, because the caller is still assigning slots to requests. */
  #checkSoon(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    queueMicrotask(() => {
      this.#isChecking = false;
      if (!this.#closed) this.#check();
    });
  }

  #check(): void {
    const isWanted = this.#waiting > 0 || this.#wanted;
    const isIdle = this.#inFlight === 0;
    if (this.#state === "off" && isWanted) void this.#start();
    else if (this.#state === "waiting" && !isWanted) this.#claim?.abort(new Error("nobody waits any more"));
    else if ((this.#state === "asleep" || this.#state === "loading") && this.#unloading)
      this.#leaveByItself("unloaded");
    else if (this.#state === "asleep" && isWanted) void this.#wake();
    else if (this.#state === "loaded" && isIdle) {
      if (this.#unloading) this.#leaveByItself("unloaded");
      else {
        this.#options.budget.changed();
        this.#keep();
      }
    }
  }

  /** Stops the command, or puts it to sleep, once it has been idle for `keepSeconds`. */
  #keep(): void {
    const { keepSeconds } = this.#options.settings;
    if (keepSeconds === null || this.pinned || this.#state !== "loaded") return;
    const { idleSinceMs } = this;
    if (idleSinceMs === undefined) return;
    const leftMs = keepSeconds * 1000 - (exactMs() - idleSinceMs);
    clearTimeout(this.#timer);
    if (leftMs <= 0) this.#leaveByItself("idle");
    else this.#timer = setTimeout(() => this.#keep(), Math.min(Math.max(leftMs, 1), maxTimerMs));
  }

  #leaveByItself(why: "idle" | "unloaded"): void {
    clearTimeout(this.#timer);
    if (this.#lease?.mayLeave === false) {
      this.#timer = setTimeout(() => this.#check(), stayMs);
      return;
    }
    const to = why === "idle" && this.asleep ? "asleep" : "gone";
    this.#lease?.leaves(to);
    void (to === "asleep" ? this.#sleep() : this.#stop(why));
  }

  async #start(): Promise<void> {
    this.#set("waiting");
    this.#fits = true;
    this.#claim = new AbortController();
    try {
      this.#lease = await this.#options.budget.claim(this, this.#amounts, this.#claim.signal);
    } catch (error) {
      if (error instanceof NeverFits) {
        this.#fits = false;
        this.#fail(textOf(error));
      } else this.#rest();
      return;
    }
    if (this.#closed) return;
    this.#set("loading");
    this.#counts.starts++;
    this.#failure = "";
    const beganMs = exactMs();
    const run = this.#launch();
    if (!run) return;
    try {
      await run.ready();
      await this.#options.onReady(run);
      if (this.#run === run && this.#state === "loading") this.#opens(beganMs);
    } catch (error) {
      // If the process has ended or is being stopped, `#ended` handles that.
      if (this.#run !== run || this.#state !== "loading") return;
      this.#failure = textOf(error);
      void run.stop();
    }
  }

  /** Starts the server process. Returns undefined if no process could be created. */
  #launch(): ServerRun | undefined {
    const { settings, environment, dataDir, output, stopMs, log } = this.#options;
    const mark = markOf(dataDir, `${this.#startId}-${this.#counts.starts}`);
    try {
      const run = new ServerRun({ settings, environment, mark, output, stopMs });
      this.#run = run;
      void run.gone.then((code) => {
        if (this.#run === run) this.#ended(howItEnded(code));
      });
      log.info("model_loading", { upstream: this.name });
      return run;
    } catch (error) {
      this.#ended(textOf(error));
      return undefined;
    }
  }

  /**
   * Marks the command as loaded. Waiting requests get their slots first, so that the memory budget does not see
   * an idle command and unload it.
   */
  #opens(beganMs: number): void {
    const seconds = (exactMs() - beganMs) / 1000;
    this.#counts.loadSeconds += seconds;
    this.#options.log.info("model_loaded", { upstream: this.name, ms: Math.round(seconds * 1000) });
    this.#loadedMs = exactMs();
    this.#idleMs = exactMs();
    this.#wanted = false;
    this.#failure = "";
    this.#set("loaded");
    if (this.open) this.#options.onOpen();
    this.#lease?.loaded();
    this.resize();
    this.#checkSoon();
  }

  async #stop(why: "evicted" | "idle" | "unloaded" | "not asleep"): Promise<void> {
    clearTimeout(this.#timer);
    this.#set("stopping");
    this.#options.log.info("model_stopping", { upstream: this.name, why });
    await this.#run?.stop();
  }

  /** Handles the end of the server process and frees its memory. */
  #ended(how: string): void {
    const state = this.#state;
    const isLoading = state === "loading" || state === "waking";
    const lease = this.#lease;
    this.#run = undefined;
    this.#lease = undefined;
    clearTimeout(this.#timer);
    if (this.#closed) return;
    if (state === "stopping" && this.#failure === "") {
      // The command had loaded, so its earlier failures no longer count.
      if (this.#loadedMs > 0) this.#failures = 0;
      this.#rest();
    } else {
      if (this.#failure === "") this.#failure = isLoading ? `${how} before it was ready` : how;
      this.#counts.failures++;
      if (!isLoading && exactMs() - this.#loadedMs > stableMs) this.#failures = 0;
      this.#options.log.error("model_failed", { upstream: this.name, detail: this.#failure });
      this.#tryAgain();
    }
    lease?.release();
  }

  #tryAgain(): void {
    this.#failures++;
    if (this.#failures >= maxFailures) {
      this.#fail(this.#failure);
      return;
    }
    this.#set("restarting");
    const delayMs = Math.min(firstRetryMs * 2 ** (this.#failures - 1), maxRetryMs);
    this.#timer = setTimeout(() => this.#rest(), delayMs);
  }

  /** Marks the command as failed. Waiting requests get the error, and so do new ones for `restMs`. */
  #fail(why: string): void {
    const { last } = this.#options.output;
    // An empty failure text means that no process ran, so the last line of output belongs to an earlier process.
    this.#failure = last === undefined || this.#failure === "" ? why : `${why}; its last line: ${last}`;
    this.#failures = 0;
    this.#wanted = false;
    this.#options.log.error("model_not_started", { upstream: this.name, detail: this.#failure });
    this.#set("failed");
    this.#options.onOpen();
    this.#timer = setTimeout(() => this.#rest(), restMs);
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#unloading = false;
    this.#yielding = false;
    if (this.pinned && !this.#closed) this.#wanted = true;
    this.#set("off");
    this.#checkSoon();
  }

  async #sleep(): Promise<void> {
    clearTimeout(this.#timer);
    const run = this.#run;
    const amounts = this.asleep;
    // Falling asleep frees this command's memory, so other models no longer need it to yield.
    this.#yielding = false;
    this.#set("stopping");
    const slept = run !== undefined && amounts !== undefined && (await fallAsleep(run.url));
    if (!run || this.#run !== run) return;
    if (!slept) {
      this.#lease?.leaves("gone");
      await this.#stop("not asleep");
      return;
    }
    this.#set("asleep");
    this.#lease?.slept(amounts);
    this.#checkSoon();
  }

  /** Wakes a sleeping command after reserving its memory. If no request needs it any more, the command stays asleep. */
  async #wake(): Promise<void> {
    const run = this.#run;
    if (!run || !this.#lease) return;
    this.#set("waiting");
    const claim = new AbortController();
    this.#claim = claim;
    const beganMs = exactMs();
    try {
      await this.#lease.grow(this.#amounts, claim.signal);
      if (this.#run !== run) return;
      this.#set("waking");
      if (!(await wakeUp(run.url))) throw new Error("it did not wake up");
      if (this.#run === run) this.#opens(beganMs);
    } catch (error) {
      // The process has ended, or is being stopped for another model.
      if (this.#run !== run || this.#state === "stopping") return;
      if (claim.signal.aborted) {
        this.#set("asleep");
        this.#checkSoon();
        return;
      }
      this.#failure = textOf(error);
      await run.stop();
    }
  }

  #set(state: ModelProcessState): void {
    this.#state = state;
    this.#since = Math.floor(wallMs() / 1000);
  }
}

function textOf(error: unknown): string {
  if (!(error instanceof NeverFits)) return error instanceof Error ? error.message : String(error);
  const { pool, needed, total, pinned } = error;
  if (!isMemory(pool)) return `A pinned model has the one place of the group ${pool.slice(groupPool("").length)}.`;
  const where = pool === ramPool ? "RAM" : pool;
  const beside = pinned > 0 ? `, of which pinned models hold ${gigabytes(pinned)}` : "";
  return `It needs ${gigabytes(needed)} of ${where}, and the budget has ${gigabytes(total)}${beside}.`;
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(2)} GB`;
}

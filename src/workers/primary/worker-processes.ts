// The worker processes of a server: starts them, talks to them over one socket, replaces dead ones and ends them
// cleanly.
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { exactMs } from "../../base/clock.ts";
import { StartError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { SpanTotals, TotalsOwner } from "../../domain/usage/usage.ts";
import { Changes } from "../link/changes.ts";
import { putGrant } from "../link/figures.ts";
import { FrameLink, type Message } from "../link/frame-link.ts";
import { errorText, packed, type ToPrimary, type ToWorker } from "../link/messages.ts";
import {
  type OrphanedLeases,
  type RpcAnswers,
  type RpcMessages,
  RpcServer,
  type RpcServerOptions,
} from "./rpc-server.ts";

export interface WorkerProcessesOptions {
  count: number;
  /** The command that starts a worker. The path of the socket and the worker's number are appended. */
  command: readonly string[];
  /** The directory of the socket. Only this process may use it. */
  directory: string;
  rpcServer: RpcServerOptions;
  /** Returns the cached tiers of the database: a worker that drops its own cache must not wait for the database. */
  tiers(): unknown;
  /** Records a request that a worker refused. */
  refused(request: ToPrimary["refused"][0]): void;
  refusal(counted: ToPrimary["refusal"][0]): void;
  /** Called with the outcomes of requests. `took` names the upstreams that accepted a request. */
  outcomes(...counts: ToPrimary["outcomes"]): void;
  /** Returns everything that a worker needs to serve, as plain data. */
  setup(number: number): unknown;
  /** Returns the models that workers currently serve by themselves. */
  models(): unknown;
  log: Log;
  /** Forwards complete lines of the workers' logs. Does not use the bytes after it returns. */
  passLines(lines: Uint8Array): void;
}

const firstRestartMs = 200;
const maxRestartMs = 30_000;
/** Milliseconds that a worker must run so that its death resets the back-off. */
const stableMs = 60_000;
/** Maximum milliseconds for the start of a worker. */
const startMs = 20_000;
/**
 * Milliseconds of silence after which a worker counts as hanging. The kernel still gives it connections, which nobody
 * would answer.
 */
const hangMs = 5_000;
const pollEveryMs = 2_000;
const figuresMs = 1_000;
const flushMs = 5_000;
/**
 * Maximum milliseconds for which workers hold back writes to the database. A little later, a worker that has answered
 * writes again, even without a release.
 */
const holdMs = 4_000;
const pollMs = 20;
/** Milliseconds after its deadline at which a stopping worker is killed. Normally it ends by itself. */
const graceMs = 6_000;

type Socket = Bun.Socket<Connected | undefined>;

/** A worker whose link is open. */
interface Connected {
  readonly link: FrameLink;
  worker: Worker | undefined;
}

interface Worker {
  readonly number: number;
  process: Bun.Subprocess | undefined;
  /** Resolves once the worker's whole log was forwarded. */
  output: Promise<void> | undefined;
  startedMs: number;
  deaths: number;
  restart: ReturnType<typeof setTimeout> | undefined;
  link: FrameLink | undefined;
  rpcServer: RpcServer | undefined;
  /** The reservations of the previous process, until their usage is known. */
  orphans: OrphanedLeases;
  isListening: boolean;
  readonly questions: Map<number, (value: unknown) => void>;
}

export class WorkerProcesses {
  readonly #options: WorkerProcessesOptions;
  readonly #workers: Worker[];
  readonly #socketPath: string;
  readonly #changes: Changes;
  #listener: Bun.UnixSocketListener<Connected | undefined> | undefined;
  #started = Promise.withResolvers<void>();
  #isStarted = false;
  #watch: ReturnType<typeof setInterval> | undefined;
  #stopping = false;
  #stopped: Promise<void> | undefined;
  #questions = 0;
  #models = "";
  /** The changes of the configuration since the start, which later workers get too. */
  #configured: string | undefined;

  constructor(options: WorkerProcessesOptions) {
    this.#options = options;
    this.#socketPath = join(options.directory, "workers.sock");
    this.#changes = new Changes(options.directory);
    this.#workers = Array.from({ length: options.count }, (_, i) => ({
      ...{ number: i + 1, process: undefined, output: undefined, startedMs: 0, deaths: 0, restart: undefined },
      ...{ link: undefined, rpcServer: undefined, isListening: false, questions: new Map(), orphans: new Map() },
    }));
  }

  /** Starts the workers. Resolves once all accept requests. Rejects with a StartError if one cannot. */
  async start(): Promise<void> {
    this.#listener = Bun.listen<Connected | undefined>({
      unix: this.#socketPath,
      socket: {
        open: (socket) => this.#accept(socket),
        data: (socket, bytes) => socket.data?.link.data(bytes),
        drain: (socket) => socket.data?.link.drain(),
        close: (socket) => socket.data?.link.ended(),
        error: (socket) => socket.terminate(),
      },
    });
    chmodSync(this.#socketPath, 0o600);
    for (const worker of this.#workers) this.#launch(worker);
    this.#watch = setInterval(() => this.#checkHanging(), pollEveryMs);
    const timer = setTimeout(() => this.#started.reject(new StartError("The workers did not start in time.")), startMs);
    try {
      await this.#started.promise;
      this.#isStarted = true;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns the process ids of running workers, for tests that kill them. */
  get pids(): number[] {
    return this.#workers.flatMap(({ process }) => (process && process.exitCode === null ? [process.pid] : []));
  }

  /** Makes all workers drop their cached credentials and limits. */
  drop(): void {
    this.#changes.raise();
    for (const worker of this.#live()) this.#send(worker, "drop");
  }

  /** Sends workers the models that they serve, if these have changed. */
  modelsChanged(): void {
    const text = packed(this.#options.models());
    if (text === this.#models) return;
    this.#models = text;
    this.#change("models", text);
  }

  /** Makes all workers stop the running requests of callers with these ids. */
  suspended(ids: readonly string[]): void {
    for (const worker of this.#live()) this.#send(worker, "suspended", ids);
  }

  /** Sends a configuration. Cached keys stay valid, even while the database is unreachable. */
  configure(config: unknown): void {
    const text = packed(config);
    this.#configured = text;
    this.#change("configure", text);
  }

  /** Sends a change; from now on no worker uses the earlier state. */
  #change(name: "models" | "configure", packedText: string): void {
    this.#changes.raise();
    for (const worker of this.#live()) {
      this.#send(worker, name, packedText);
      // Links keep the order, so a worker that reads this message has read the change before it.
      this.#send(worker, "changed");
    }
  }

  /** Returns the metrics of each running worker by process id; undefined if they do not arrive within a second. */
  async figures(): Promise<Map<number, string | undefined>> {
    const asked = this.#live().map(async (worker): Promise<[number, string | undefined]> => {
      const pid = worker.process?.pid ?? 0;
      const figures = await this.#ask(worker, "figures", { withinMs: figuresMs });
      return [pid, typeof figures === "string" && figures !== "silent" ? figures : undefined];
    });
    return new Map(await Promise.all(asked));
  }

  /** Writes all settled usage of workers to the database. Resolves with whether that succeeded. */
  async flush(): Promise<boolean> {
    const asked = this.#workers.map(async (worker) => {
      // Before it listens, the successor of a dead worker writes the usage that the dead worker left.
      if (!worker.link || !worker.isListening) return false;
      return (await this.#ask(worker, "flush", { withinMs: flushMs })) === true;
    });
    return (await Promise.all(asked)).every(Boolean);
  }

  /**
   * Asks all workers for settled usage that is not in the database yet, and calls `report` for each answer. Until the
   * returned function is called, workers write nothing to the database. Rejects if one of them cannot answer in time.
   */
  async hold(owner: TotalsOwner, report: (worker: object, waiting: SpanTotals) => void): Promise<() => void> {
    const releases: (() => void)[] = [];
    const release = () => {
      for (const one of releases) one();
    };
    try {
      await Promise.all(this.#workers.map((worker) => this.#holdOf(worker, owner, report, releases)));
      return release;
    } catch (error) {
      release();
      throw error;
    }
  }

  /**
   * Asks one worker. A dead worker has part of the usage in its spool. Its successor, which is asked instead, writes
   * that part to the database before it listens.
   */
  async #holdOf(
    worker: Worker,
    owner: TotalsOwner,
    report: (worker: object, waiting: SpanTotals) => void,
    releases: (() => void)[],
  ): Promise<void> {
    const giveUpMs = exactMs() + holdMs;
    while (!this.#stopping) {
      const withinMs = giveUpMs - exactMs();
      const { rpcServer, isListening } = worker;
      let waiting: unknown;
      if (rpcServer && isListening) {
        const question = this.#questions + 1;
        releases.push(() => this.#send(worker, "release", question));
        const heard = (value: unknown) => {
          if (value !== undefined && value !== null) report(rpcServer, value as SpanTotals);
        };
        waiting = await this.#ask(worker, "hold", { withinMs, heard }, owner);
      } else await Bun.sleep(pollMs);
      if (waiting === null || waiting === "silent" || withinMs <= 0)
        throw new Error(`Worker ${worker.number} cannot tell what was used.`);
      if (waiting !== undefined) return;
    }
  }

  leave(): void {
    for (const worker of this.#live()) this.#send(worker, "leave");
  }

  turnAway(): void {
    for (const worker of this.#live()) this.#send(worker, "turnAway");
  }

  /** Stops all workers. Resolves once all have ended. Only the first call counts. */
  stop(drainMs: number): Promise<void> {
    this.#stopped ??= this.#stop(drainMs);
    return this.#stopped;
  }

  async #stop(drainMs: number): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#watch);
    for (const worker of this.#workers) {
      clearTimeout(worker.restart);
      if (worker.link) this.#send(worker, "stop", drainMs);
      // A worker without a link has just started and serves nothing yet.
      else worker.process?.kill("SIGKILL");
    }
    // The last lines of a worker may arrive after its end.
    const ended = Promise.all(this.#workers.map(({ process, output }) => Promise.all([process?.exited, output])));
    await Promise.race([ended, Bun.sleep(drainMs + graceMs)]);
    for (const worker of this.#workers) worker.process?.kill("SIGKILL");
    await ended;
  }

  async close(): Promise<void> {
    await this.stop(0);
    this.#listener?.stop(true);
  }

  #checkHanging(): void {
    for (const worker of this.#workers.filter(({ isListening, link }) => isListening && link !== undefined)) {
      void this.#ask(worker, "confirm", { withinMs: hangMs }).then((answer) => {
        if (answer === "silent" && !this.#stopping) this.#kill(worker, "it hangs");
      });
    }
  }

  #live(): Worker[] {
    return this.#workers.filter(({ link }) => link !== undefined);
  }

  #launch(worker: Worker): void {
    worker.startedMs = exactMs();
    try {
      this.#spawn(worker);
    } catch (error) {
      // No memory or file descriptors are left, or the installation is being replaced.
      this.#options.log.error("worker_not_started", { worker: worker.number, detail: String(error) });
      this.#exited(worker, null, null);
    }
  }

  #spawn(worker: Worker): void {
    worker.process = Bun.spawn([...this.#options.command, this.#socketPath, String(worker.number)], {
      // If this pipe closes, the worker knows that this process is gone.
      stdin: "pipe",
      // Only one process writes the log, because the lines of several would be mixed.
      stdout: "pipe",
      stderr: "inherit",
      onExit: (_process, code, signal) => this.#exited(worker, code, signal),
    });
    worker.output = passLines(worker.process.stdout as ReadableStream<Uint8Array>, this.#options.passLines);
  }

  #exited(worker: Worker, code: number | null, signal: string | number | null): void {
    const lived = exactMs() - worker.startedMs;
    worker.link?.ended();
    worker.process = undefined;
    worker.isListening = false;
    if (this.#stopping) return;
    if (!this.#isStarted) {
      this.#started.reject(
        new StartError(`Worker ${worker.number} ended while it started; the lines before this say why.`),
      );
      return;
    }
    worker.deaths = lived > stableMs ? 1 : worker.deaths + 1;
    const delayMs = Math.min(firstRestartMs * 2 ** (worker.deaths - 1), maxRestartMs);
    this.#options.log.error("worker_died", { worker: worker.number, code, signal, restart_ms: delayMs });
    worker.restart = setTimeout(() => this.#launch(worker), delayMs);
  }

  #kill(worker: Worker, detail: string): void {
    this.#options.log.error("worker_killed", { worker: worker.number, detail });
    worker.process?.kill("SIGKILL");
    worker.link?.ended();
  }

  #accept(socket: Socket): void {
    const link = new FrameLink(socket, {
      received: (message) => this.#received(connected, message),
      figures: (kind, words, at) => connected.worker?.rpcServer?.figures(kind, words, at),
      closed: (fault) => this.#lost(connected, fault),
    });
    const connected: Connected = { link, worker: undefined };
    socket.data = connected;
  }

  #received(connected: Connected, message: Message): void {
    const [name, ...values] = message;
    const { worker } = connected;
    if (worker === undefined) {
      this.#meet(connected, Number(name === "hello" ? values[0] : 0));
      return;
    }
    const handler = this.#handlers[name as keyof ToPrimary];
    if (handler) handler(worker, values);
    else worker.rpcServer?.take(name as keyof RpcMessages, values);
  }

  /** Handlers of messages that the RpcServer does not handle. */
  readonly #handlers: Readonly<Partial<Record<keyof ToPrimary, (worker: Worker, values: readonly unknown[]) => void>>> =
    {
      listening: (worker) => this.#listens(worker),
      tiers: (worker, [question]) => this.#send(worker, "answer", Number(question), this.#options.tiers()),
      refused: (_worker, [request]) => this.#options.refused(request as ToPrimary["refused"][0]),
      refusal: (_worker, [counted]) => this.#options.refusal(counted as ToPrimary["refusal"][0]),
      outcomes: (_worker, counts) => this.#options.outcomes(...(counts as ToPrimary["outcomes"])),
      answer: (worker, [question, value]) => {
        worker.questions.get(Number(question))?.(value);
        worker.questions.delete(Number(question));
      },
    };

  #meet(connected: Connected, number: number): void {
    const worker = this.#workers[number - 1];
    if (!worker || worker.link) throw new Error(`There is no worker ${number} to be met.`);
    connected.worker = worker;
    worker.link = connected.link;
    const answers: RpcAnswers = {
      answer: (question, value) => connected.link.send("answer", question, value),
      refuse: (question, error) => connected.link.send("refuse", question, errorText(error)),
      grant: (question, reservedTokens, status) => putGrant(connected.link, question, reservedTokens, status),
    };
    worker.rpcServer = new RpcServer(this.#options.rpcServer, answers, worker.orphans);
    this.#send(worker, "setup", packed(this.#options.setup(number)), this.#changes.count);
    if (this.#configured !== undefined) this.#send(worker, "configure", this.#configured);
    this.#send(worker, "models", packed(this.#options.models()));
  }

  #listens(worker: Worker): void {
    worker.isListening = true;
    worker.rpcServer?.recoveredAll();
    if (this.#workers.every(({ isListening }) => isListening)) this.#started.resolve();
  }

  #lost({ worker, link }: Connected, fault: string | undefined): void {
    if (!worker || worker.link !== link) return;
    worker.link = undefined;
    if (worker.rpcServer) worker.orphans = worker.rpcServer.close();
    worker.rpcServer = undefined;
    for (const answer of worker.questions.values()) answer(undefined);
    worker.questions.clear();
    if (fault !== undefined) this.#kill(worker, fault);
  }

  #send<Name extends keyof ToWorker>({ link }: Worker, name: Name, ...values: ToWorker[Name]): void {
    link?.send(name, ...values);
  }

  /**
   * Resolves with the answer, which `heard` also gets immediately. Undefined if the worker ended meanwhile, "silent" if
   * no answer came in time.
   */
  #ask<Name extends "confirm" | "figures" | "flush" | "hold">(
    worker: Worker,
    name: Name,
    { withinMs, heard }: { withinMs: number; heard?: (value: unknown) => void },
    ...values: ToWorker[Name] extends [question: number, ...infer Others] ? Others : never
  ): Promise<unknown> {
    const question = ++this.#questions;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        worker.questions.delete(question);
        resolve("silent");
      }, withinMs);
      worker.questions.set(question, (value) => {
        clearTimeout(timer);
        heard?.(value);
        resolve(value);
      });
      worker.link?.send(name, question, ...(values as unknown[]));
    });
  }
}

const lineFeed = 0x0a;

/** Forwards complete lines. An unfinished last line is forwarded at the end. */
async function passLines(output: ReadableStream<Uint8Array>, pass: (lines: Uint8Array) => void): Promise<void> {
  let rest: Uint8Array = new Uint8Array();
  for await (const bytes of output) {
    const end = bytes.lastIndexOf(lineFeed) + 1;
    if (end === 0) {
      rest = Buffer.concat([rest, bytes]);
      continue;
    }
    if (rest.length > 0) pass(rest);
    pass(bytes.subarray(0, end));
    rest = bytes.slice(end);
  }
  if (rest.length > 0) pass(rest);
}

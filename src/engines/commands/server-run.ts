// One server process of a command: started, polled until it is ready, and stopped with all its child processes.
import { exactMs } from "../../base/clock.ts";
import { howItEnded } from "../../processes/guard.ts";
import { GuardedProcess } from "../../processes/guarded-process.ts";
import type { Output } from "../../processes/output.ts";
import { type CommandSettings, commonEnvironment, withPort } from "./settings.ts";

export interface RunOptions {
  settings: CommandSettings;
  /** The gateway's environment. A few of its variables are passed on to the command. */
  environment: Readonly<Record<string, string | undefined>>;
  mark: string;
  output: Output;
  /** The time between SIGTERM and SIGKILL. Default 10 s. */
  stopMs?: number | undefined;
}

const defaultStopMs = 10_000;
const firstProbeMs = 50;
const maxProbeMs = 1_000;
const pollTimeoutMs = 5_000;
/** A model server is considered hung if it sends nothing and fails this many polls. */
const maxMisses = 2;

export class ServerRun {
  readonly port: number;
  /** Resolves with the exit code once all processes of the run have ended. Never rejects. */
  readonly gone: Promise<number>;
  readonly #options: RunOptions;
  readonly #process: GuardedProcess;
  #signs = 0;

  /** Starts the command. Throws if no process could be created. */
  constructor(options: RunOptions) {
    this.#options = options;
    this.port = freePort();
    const { settings, environment, mark, output, stopMs = defaultStopMs } = options;
    const { command, env } = withPort(settings, this.port);
    const { directory } = settings;
    const variables = { ...commonEnvironment(environment), ...env };
    this.#process = new GuardedProcess({ command, directory, env: variables, mark, stopMs });
    takenPorts.add(this.port);
    void output.read(this.#process.stdout);
    void output.read(this.#process.stderr);
    this.gone = this.#process.gone.finally(() => takenPorts.delete(this.port));
  }

  /** The mark in the environment of all processes of this command, by which they are found. */
  get mark(): string {
    return this.#options.mark;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Resolves once the server accepts requests. Rejects if the server ends earlier or takes too long. */
  async ready(): Promise<void> {
    const { readySeconds } = this.#options.settings;
    const untilMs = exactMs() + readySeconds * 1000;
    for (let waitMs = firstProbeMs; ; waitMs = Math.min(waitMs * 1.5, maxProbeMs)) {
      await Promise.race([Bun.sleep(waitMs), this.gone]);
      if (this.#process.isGone) throw new Error(`${howItEnded(await this.gone)} before it was ready`);
      if (await this.#isReady().catch(() => false)) return;
      if (exactMs() > untilMs) throw new Error(`it was not ready within ${readySeconds} s`);
    }
  }

  /** Returns how many pieces of response data the server has sent. */
  get signs(): number {
    return this.#signs;
  }

  /** Counts one piece of response data, and returns the new count. */
  gaveSign(): number {
    return ++this.#signs;
  }

  /**
   * Reports whether the server hangs: it has sent nothing since the count was `signs`, and its ready path does
   * not answer. A server that is only slow answers that path. Never rejects.
   */
  async hangs(signs: number): Promise<boolean> {
    for (let misses = 0; misses < maxMisses; misses++) {
      if (misses > 0) await Bun.sleep(maxProbeMs);
      // If the gateway could not send the poll, nothing is known about the server, so it is taken for ready.
      if (this.#signs !== signs || (await this.#isReady().catch(() => true))) return false;
    }
    return this.#signs === signs && !this.#process.isGone;
  }

  /** Sends SIGTERM and later SIGKILL. Resolves with the exit code once all processes have ended. */
  stop(): Promise<number> {
    return this.#process.stop();
  }

  /**
   * Reports whether the server is ready. Requests the configured ready path, or else `/health`, or else the
   * model list. Rejects if the gateway could not send the request.
   */
  async #isReady(): Promise<boolean> {
    const { readyPath, path } = this.#options.settings;
    const status = await this.#statusOf(readyPath ?? "/health");
    if (status === 200) return true;
    if (readyPath !== undefined || status === undefined || ![404, 405, 501].includes(status)) return false;
    return (await this.#statusOf(`${path}/models`)) === 200;
  }

  async #statusOf(path: string): Promise<number | undefined> {
    try {
      const options = { signal: AbortSignal.timeout(pollTimeoutMs), redirect: "manual" } as const;
      const response = await fetch(`${this.url}${path}`, options);
      await response.body?.cancel();
      return response.status;
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code === "EMFILE" || code === "ENFILE") throw error;
      return undefined;
    }
  }
}

/**
 * The range of ports for servers. It lies below the usual range of ephemeral ports, because an outgoing
 * connection could take the port before the command does.
 */
const [firstPort, portCount] = [20_000, 12_000];
/** Ports of processes that have not ended yet. */
const takenPorts = new Set<number>();

/** Returns a free port. Throws if 100 attempts find none. */
function freePort(): number {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = firstPort + Math.floor(portCount * Math.random());
    if (!takenPorts.has(port) && isFree(port)) return port;
  }
  throw new Error("no free port was found for it");
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: "127.0.0.1", port, exclusive: true, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}

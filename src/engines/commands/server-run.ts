// A run of a command: started behind its guard, polled until it is ready, stopped, and gone once no process of it is
// left.
import { exactMs } from "../../base/clock.ts";
import { howItEnded } from "../../processes/guard.ts";
import { GuardedProcess } from "../../processes/guarded-process.ts";
import type { Output } from "../../processes/output.ts";
import { type CommandSettings, commonEnvironment, withPort } from "./settings.ts";

export interface RunOptions {
  settings: CommandSettings;
  /** The gateway's environment, from which a few variables are passed on. */
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
/** A server that sends nothing and misses this many polls hangs. */
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

  /** The mark by which all processes of this run are recognized. */
  get mark(): string {
    return this.#options.mark;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /**
   * Resolves once the server accepts requests. Rejects with a sentence if the server ends earlier or takes too long.
   */
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

  /** Returns how many signs of life the server has given: answers that began, and pieces of them. */
  get signs(): number {
    return this.#signs;
  }

  /** Counts a sign of life, and returns how many there are now. */
  gaveSign(): number {
    return ++this.#signs;
  }

  /**
   * Reports whether the server hangs: it has given no sign of life since the count was `signs`, and does not answer its
   * ready path. A slow server answers that path. Never rejects.
   */
  async hangs(signs: number): Promise<boolean> {
    for (let misses = 0; misses < maxMisses; misses++) {
      if (misses > 0) await Bun.sleep(maxProbeMs);
      // A poll that rejects was not sent by the gateway, and says nothing about the server.
      if (this.#signs !== signs || (await this.#isReady().catch(() => true))) return false;
    }
    return this.#signs === signs && !this.#process.isGone;
  }

  /** Ends the run by SIGTERM and then by SIGKILL, and resolves once it is gone. */
  stop(): Promise<number> {
    return this.#process.stop();
  }

  /**
   * Reports whether the server is ready. Asks the configured ready path, or else `/health`, or the model list of a
   * server that does not have `/health`. Rejects if the gateway could not send the request.
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
 * The range of ports for servers. It is below the range that systems use for outgoing connections, one of which could
 * take the port before the command does.
 */
const [firstPort, portCount] = [20_000, 12_000];
/** Ports of runs that are not gone yet. */
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

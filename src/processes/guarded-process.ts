// A command behind its guard: started, talked to, stopped, and gone once no process of it is left.
import { selfCommand } from "../installation/paths.ts";
import type { Guarded } from "./guard.ts";
import { endMarked } from "./orphans.ts";

/**
 * Milliseconds beyond the guard's time for the command, because the system may take long to free what the command held.
 */
const guardGraceMs = 35_000;

export class GuardedProcess {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Resolves with the exit code once all its processes have ended. Never rejects. */
  readonly gone: Promise<number>;
  readonly #guarded: Guarded;
  readonly #guard: Bun.Subprocess<"pipe", "pipe", "pipe">;
  #isGone = false;
  #stopping: Promise<number> | undefined;

  /** Throws if no process could be created. */
  constructor(guarded: Guarded) {
    this.#guarded = guarded;
    const pipes = { stdin: "pipe", stdout: "pipe", stderr: "pipe" } as const;
    this.#guard = Bun.spawn(selfCommand("guard-process"), pipes);
    this.stdout = this.#guard.stdout;
    this.stderr = this.#guard.stderr;
    // If the guard ends before it has read the line, `gone` reports that.
    this.write(`${JSON.stringify(guarded)}\n`).catch(() => {});
    this.gone = this.#guard.exited.then(async (code) => {
      // If only the guard was killed, its command still runs.
      if (this.#guard.signalCode !== null) await endMarked(guarded.mark);
      this.#isGone = true;
      return code;
    });
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** The process id of the guard. */
  get pid(): number {
    return this.#guard.pid;
  }

  /** The command reads what follows the first line, which is for the guard. Resolves once the system accepted it. */
  async write(text: string): Promise<void> {
    this.#guard.stdin.write(text);
    await this.#guard.stdin.flush();
  }

  /** Ends the command by SIGTERM and then by SIGKILL, and resolves once the command is gone. */
  stop(): Promise<number> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<number> {
    // The end of standard input would wait behind input that the command does not read.
    if (this.#guarded.talks) this.#guard.kill("SIGTERM");
    // A broken pipe also means the end.
    void Promise.resolve(this.#guard.stdin.end()).catch(() => {});
    const killer = setTimeout(() => this.#guard.kill("SIGKILL"), this.#guarded.stopMs + guardGraceMs);
    try {
      return await this.gone;
    } finally {
      clearTimeout(killer);
    }
  }
}

// Starts a command behind its guard process, writes to it, stops it, and waits until all its processes have ended.
import { selfCommand } from "../installation/paths.ts";
import type { Guarded } from "./guard.ts";
import { endMarked } from "./orphans.ts";

/**
 * Extra milliseconds before the guard is killed, because the system may take long to free the memory of the command.
 */
const guardGraceMs = 35_000;
/** True in a container without an init process. Orphans then become children of this process, which ignores their end. */
const isFirstProcess = process.pid === 1;

export class GuardedProcess {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Resolves with the exit code once all processes of the command have ended. Never rejects. */
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
    this.write(`${JSON.stringify({ ...guarded, reaps: guarded.reaps ?? isFirstProcess })}\n`).catch(() => {});
    this.gone = this.#guard.exited.then(async (code) => {
      // If a signal killed only the guard, its command still runs.
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

  /**
   * Writes to the command's standard input, after the first line, which the guard reads. Resolves once the system
   * accepted the text.
   */
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
    // The guard sees the end of standard input only after input that the command may not read, so the guard also gets a
    // signal.
    if (this.#guarded.talks) this.#guard.kill("SIGTERM");
    // Errors are ignored: a broken pipe means that the guard has ended or sees the end.
    void Promise.resolve(this.#guard.stdin.end()).catch(() => {});
    const killer = setTimeout(() => this.#guard.kill("SIGKILL"), this.#guarded.stopMs + guardGraceMs);
    try {
      return await this.gone;
    } finally {
      clearTimeout(killer);
    }
  }
}

// A command behind its guard: started, spoken with, stopped, and gone once nothing of it is left.
import { selfCommand } from "../installation/places.ts";
import type { Guarded } from "./guard.ts";
import { endMarked } from "./orphans.ts";

/** Beyond the time that the guard gives the command: the system may take long to free what it held. */
const guardGraceMs = 35_000;

export class GuardedProcess {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Resolves with the exit code once all of it has ended. Never rejects. */
  readonly gone: Promise<number>;
  readonly #guarded: Guarded;
  readonly #guard: Bun.Subprocess<"pipe", "pipe", "pipe">;
  #isGone = false;
  #stopping: Promise<number> | undefined;

  /** Throws where no process could be made. */
  constructor(guarded: Guarded) {
    this.#guarded = guarded;
    const pipes = { stdin: "pipe", stdout: "pipe", stderr: "pipe" } as const;
    this.#guard = Bun.spawn(selfCommand("guard-process"), pipes);
    this.stdout = this.#guard.stdout;
    this.stderr = this.#guard.stderr;
    // Where it ends before that, `gone` says so.
    this.write(`${JSON.stringify(guarded)}\n`).catch(() => {});
    this.gone = this.#guard.exited.then(async (code) => {
      // What killed the guard alone has left its command.
      if (this.#guard.signalCode !== null) await endMarked(guarded.mark);
      this.#isGone = true;
      return code;
    });
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** The process of the guard. */
  get pid(): number {
    return this.#guard.pid;
  }

  /** Behind the first line, which is for the guard, it is what the command reads. Resolves once the system took it. */
  async write(text: string): Promise<void> {
    this.#guard.stdin.write(text);
    await this.#guard.stdin.flush();
  }

  /** Ends it, by SIGTERM and then by SIGKILL, and resolves once it is gone. */
  stop(): Promise<number> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<number> {
    // Standard input alone would wait behind what the command does not read.
    if (this.#guarded.talks) this.#guard.kill("SIGTERM");
    // A pipe that is broken is what an end looks like, too.
    void Promise.resolve(this.#guard.stdin.end()).catch(() => {});
    const killer = setTimeout(() => this.#guard.kill("SIGKILL"), this.#guarded.stopMs + guardGraceMs);
    try {
      return await this.gone;
    } finally {
      clearTimeout(killer);
    }
  }
}

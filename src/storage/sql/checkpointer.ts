// Moves SQLite's write-ahead log into the database on a separate thread, which waits for the disk.

import { statSync } from "node:fs";
import { exactMs } from "../../base/clock.ts";
import { threadFile } from "../../installation/paths.ts";
import type { CheckpointAnswer, CheckpointRequest } from "./checkpoint-thread.ts";
import { type Database, dialectOf } from "./database.ts";
import { databaseFile } from "./durable-commits.ts";

/** Settings of each connection through which the thread that serves requests writes. */
export const checkpointsElsewhere = [
  // SQLite runs its own checkpoint only if the thread has not run one for 256 MB of log.
  "PRAGMA wal_autocheckpoint = 65536",
  // The log file is truncated when it restarts, so its size shows how much is still to be moved.
  "PRAGMA journal_size_limit = 0",
] as const;

const pollMs = 500;
/** The log restarts after each checkpoint, and a writer then waits once for the disk, so checkpoints must be rare. */
const logBytes = 32 * 1024 * 1024;
const idleMs = 60_000;

const checkpointers = new WeakMap<Database, Checkpointer>();

/** Starts checkpoints on another thread. Undefined if the database is not a SQLite file. */
export async function startCheckpoints(db: Database): Promise<Checkpointer | undefined> {
  const file = dialectOf(db) === "sqlite" ? await databaseFile(db) : undefined;
  if (file === undefined) return undefined;
  for (const pragma of checkpointsElsewhere) await db.unsafe(pragma);
  const checkpointer = new Checkpointer(file);
  checkpointers.set(db, checkpointer);
  return checkpointer;
}

/** Moves the current log into the database, as far as readers allow. Never rejects. */
export async function checkpoint(db: Database): Promise<void> {
  await checkpointers.get(db)?.run();
}

class Checkpointer {
  readonly #file: string;
  readonly #timer: ReturnType<typeof setInterval>;
  #thread: Worker | undefined;
  #running: Promise<void> | undefined;
  #usedMs = 0;
  #closed = false;
  /**
   * Size of the log after the last checkpoint. If a reader limited that checkpoint, the next one waits until the log
   * has grown by `logBytes` again.
   */
  #seenBytes = 0;

  constructor(file: string) {
    this.#file = file;
    this.#timer = setInterval(() => this.#check(), pollMs);
    this.#timer.unref();
  }

  run(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      this.#usedMs = exactMs();
    });
    return this.#running;
  }

  /** Resolves when the thread has closed the file. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closed = true;
    await this.#running;
    this.#thread?.terminate();
    this.#thread = undefined;
  }

  #check(): void {
    const bytes = this.#logBytes();
    if (bytes < this.#seenBytes) this.#seenBytes = 0;
    if (bytes - this.#seenBytes >= logBytes) void this.run();
    else if (this.#thread && this.#running === undefined && exactMs() - this.#usedMs > idleMs) {
      this.#thread.terminate();
      this.#thread = undefined;
    }
  }

  #logBytes(): number {
    return statSync(`${this.#file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  #run(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const bytes = this.#logBytes();
    const thread = this.#thread ?? new Worker(threadFile("checkpoint"));
    this.#thread = thread;
    const end = () => {
      this.#seenBytes = bytes;
      resolve();
    };
    thread.onmessage = (_answer: MessageEvent<CheckpointAnswer>) => end();
    // After a fault, the next attempt comes when the log has grown by `logBytes` again. Until then, SQLite's own limit
    // applies.
    thread.onerror = () => {
      thread.terminate();
      this.#thread = undefined;
      end();
    };
    thread.addEventListener("close", end, { once: true });
    thread.postMessage({ file: this.#file } satisfies CheckpointRequest);
    return promise;
  }
}

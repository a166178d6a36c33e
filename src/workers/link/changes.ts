// Counts the changes that every worker must apply, in memory that all processes share. A busy worker that has read no
// message for a while still sees the count.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const bytes = 4;

/** The primary process's side. */
export class Changes {
  readonly #count: Int32Array;

  /** `directory` must be private. */
  constructor(directory: string) {
    writeFileSync(fileIn(directory), new Uint8Array(bytes), { mode: 0o600 });
    this.#count = mapped(directory);
  }

  get count(): number {
    return Atomics.load(this.#count, 0);
  }

  /** Counts a change. A worker that has not applied it yet hands its requests over. */
  raise(): void {
    Atomics.add(this.#count, 0, 1);
  }
}

/** The number of changes that a worker has applied. */
export class SeenChanges {
  readonly #count: Int32Array;
  #seen: number;

  /** `seen` is the number of changes that the worker's first message already includes. */
  constructor(directory: string, seen: number) {
    this.#count = mapped(directory);
    this.#seen = seen;
  }

  /** Counts a change that the worker has applied. */
  saw(): void {
    // The number overflows as the shared counter does.
    this.#seen = (this.#seen + 1) | 0;
  }

  /** Reports whether a change is not applied yet. The worker must then not rely on its cached data. */
  get isBehind(): boolean {
    return Atomics.load(this.#count, 0) !== this.#seen;
  }
}

function mapped(directory: string): Int32Array {
  const { buffer, byteOffset } = Bun.mmap(fileIn(directory), { shared: true });
  return new Int32Array(buffer, byteOffset, bytes / Int32Array.BYTES_PER_ELEMENT);
}

function fileIn(directory: string): string {
  return join(directory, "changes");
}

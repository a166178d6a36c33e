// Counts changes that no worker may ignore, in memory shared by all processes: a busy worker that has read no message
// for a while still sees them.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const bytes = 4;

/** The primary process's side. */
export class Changes {
  readonly #count: Int32Array;

  /** `directory`: private. */
  constructor(directory: string) {
    writeFileSync(fileIn(directory), new Uint8Array(bytes), { mode: 0o600 });
    this.#count = mapped(directory);
  }

  get count(): number {
    return Atomics.load(this.#count, 0);
  }

  /** From now on a worker that has not handled it hands requests over. */
  raise(): void {
    Atomics.add(this.#count, 0, 1);
  }
}

/** The changes that a worker has handled. */
export class SeenChanges {
  readonly #count: Int32Array;
  #seen: number;

  /** `seen` counts those before its first message. */
  constructor(directory: string, seen: number) {
    this.#count = mapped(directory);
    this.#seen = seen;
  }

  /** It has handled one of them. */
  saw(): void {
    // Overflows where the count in memory does.
    this.#seen = (this.#seen + 1) | 0;
  }

  /** Whether one is not handled: then the worker must not rely on anything it knows. */
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

// How often something changed that no worker may serve without, in memory that all processes see: one that is busy, and has read no message for a while, knows that it has to.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const bytes = 4;

/** The primary process's. */
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

  /** From here on whoever has not heard of it hands over what comes. */
  raise(): void {
    Atomics.add(this.#count, 0, 1);
  }
}

/** What a worker knows of them. */
export class SeenChanges {
  readonly #count: Int32Array;
  #seen: number;

  /** `seen`: those before it was told the first time. */
  constructor(directory: string, seen: number) {
    this.#count = mapped(directory);
    this.#seen = seen;
  }

  /** It has done what one of them asks for. */
  saw(): void {
    // It turns over where the count in memory does.
    this.#seen = (this.#seen + 1) | 0;
  }

  /** Whether there is one that it has not done: then nothing may be believed of what it knows. */
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

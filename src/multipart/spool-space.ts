// The directory of forms that are too large for memory, and how much of the disk they may take together.
import { chmodSync, mkdirSync, readdirSync, rmSync, unlinkSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { BlamelessError, type GatewayError } from "../base/errors.ts";

/** One account may take half of what there is. */
const partOfAccount = 1 / 2;
const retrySeconds = 10;

export class SpoolSpace {
  readonly #directory: string;
  readonly #maxBytes: () => number;
  readonly #byAccount = new Map<string, number>();
  #heldBytes = 0;

  /** `maxBytes`: asked each time, as a reload may change it. */
  constructor(directory: string, maxBytes: () => number) {
    this.#directory = directory;
    this.#maxBytes = maxBytes;
  }

  /** The most that all forms together may have. */
  get maxBytes(): number {
    return this.#maxBytes();
  }

  /** Bytes that are set aside. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Removes what a process left that was killed, and makes the directory, for its owner only. Throws where that cannot be. */
  sweep(): void {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    chmodSync(this.#directory, 0o700);
    for (const name of readdirSync(this.#directory)) rmSync(join(this.#directory, name), { force: true });
  }

  /** A new file without a name: nothing of it is left, however the process ends. Rejects with what the system says. */
  async file(): Promise<FileHandle> {
    const path = join(this.#directory, crypto.randomUUID());
    const handle = await open(path, "wx+", 0o600);
    try {
      unlinkSync(path);
    } catch {
      // Systems that keep the name of an open file: the sweep at the next start takes it.
    }
    return handle;
  }

  /** Sets bytes aside, or gives the refusal. */
  take(accountId: string, bytes: number): GatewayError | undefined {
    const most = this.maxBytes;
    const ofAccount = (this.#byAccount.get(accountId) ?? 0) + bytes;
    if (ofAccount > most * partOfAccount && ofAccount > bytes) {
      return noRoom(
        "rate_limit_exceeded",
        "The forms of this account that are under way take as much of the disk as they may.",
      );
    }
    if (this.#heldBytes + bytes > most) {
      return noRoom("service_unavailable", "The forms that are under way take as much of the disk as they may.");
    }
    this.#heldBytes += bytes;
    this.#byAccount.set(accountId, ofAccount);
    return undefined;
  }

  release(accountId: string, bytes: number): void {
    const ofAccount = (this.#byAccount.get(accountId) ?? 0) - bytes;
    this.#heldBytes -= bytes;
    if (ofAccount > 0) this.#byAccount.set(accountId, ofAccount);
    else this.#byAccount.delete(accountId);
  }
}

function noRoom(code: "rate_limit_exceeded" | "service_unavailable", message: string): GatewayError {
  return new BlamelessError(code, `${message} Retry in ${retrySeconds} s.`, { retryAfterSeconds: retrySeconds });
}

// The directory for forms that are too large for memory, and the limit on the disk space of all forms together.
import { chmodSync, mkdirSync, readdirSync, rmSync, unlinkSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { BlamelessError, type GatewayError } from "../base/errors.ts";

/** Fraction of the disk space that one account may use. The account's first reservation may be larger. */
const partOfAccount = 1 / 2;
const retrySeconds = 10;

export class SpoolSpace {
  readonly #directory: string;
  readonly #maxBytes: () => number;
  readonly #byAccount = new Map<string, number>();
  #reservedBytes = 0;

  /** `maxBytes` is called for each reservation, because a reload may change the limit. */
  constructor(directory: string, maxBytes: () => number) {
    this.#directory = directory;
    this.#maxBytes = maxBytes;
  }

  /** Maximum bytes of all forms together. */
  get maxBytes(): number {
    return this.#maxBytes();
  }

  /** Number of reserved bytes. */
  get reservedBytes(): number {
    return this.#reservedBytes;
  }

  /**
   * Prepares the directory at the start of the program: makes it private, and deletes files that a killed process has
   * left. Throws if this fails.
   */
  sweep(): void {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    chmodSync(this.#directory, 0o700);
    for (const name of readdirSync(this.#directory)) rmSync(join(this.#directory, name), { force: true });
  }

  /**
   * Creates a file and immediately deletes its name, so that the system removes it when the process ends. Rejects with
   * the system's error.
   */
  async file(): Promise<FileHandle> {
    const path = join(this.#directory, crypto.randomUUID());
    const handle = await open(path, "wx+", 0o600);
    try {
      unlinkSync(path);
    } catch {
      // Windows cannot delete the name of a file that is open. The next start of the program deletes it.
    }
    return handle;
  }

  /** Reserves disk space. Returns an error if too little is left. */
  take(accountId: string, bytes: number): GatewayError | undefined {
    const most = this.maxBytes;
    const ofAccount = (this.#byAccount.get(accountId) ?? 0) + bytes;
    if (ofAccount > most * partOfAccount && ofAccount > bytes) {
      return noRoom(
        "rate_limit_exceeded",
        "The forms of this account that are under way take as much of the disk as they may.",
      );
    }
    if (this.#reservedBytes + bytes > most) {
      return noRoom("service_unavailable", "The forms that are under way take as much of the disk as they may.");
    }
    this.#reservedBytes += bytes;
    this.#byAccount.set(accountId, ofAccount);
    return undefined;
  }

  release(accountId: string, bytes: number): void {
    const ofAccount = (this.#byAccount.get(accountId) ?? 0) - bytes;
    this.#reservedBytes -= bytes;
    if (ofAccount > 0) this.#byAccount.set(accountId, ofAccount);
    else this.#byAccount.delete(accountId);
  }
}

function noRoom(code: "rate_limit_exceeded" | "service_unavailable", message: string): GatewayError {
  return new BlamelessError(code, `${message} Retry in ${retrySeconds} s.`, { retryAfterSeconds: retrySeconds });
}

// Buffers bytes for a socket whose kernel buffer is full.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { GatewayError } from "../../base/errors.ts";
import { isReused } from "./outgoing.ts";

/** The part of Bun's socket that takes bytes: returns how many it took, or less than 0 once it is closed. */
export interface ByteTaker {
  write(bytes: Buffer, byteOffset: number, byteLength: number): number;
}

export class ConnectionOutput {
  readonly #socket: ByteTaker;
  readonly #memoryAccount: MemoryAccount;
  #unsent: Buffer[] | undefined;
  #unsentBytes = 0;

  /** `memoryAccount` counts the kept bytes. */
  constructor(socket: ByteTaker, memoryAccount: MemoryAccount) {
    this.#socket = socket;
    this.#memoryAccount = memoryAccount;
  }

  get behind(): boolean {
    return this.#unsent !== undefined;
  }

  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  /** Writes bytes and returns whether the kernel took all. A copy of the rest is kept until `flush`. */
  writeCopied(bytes: Buffer): boolean {
    const taken = this.#unsent ? 0 : this.#socket.write(bytes, 0, bytes.length);
    // A closed socket never takes any bytes, so nothing is kept.
    if (taken < 0 || taken === bytes.length) return true;
    this.#append(Buffer.from(bytes.subarray(taken)));
    return false;
  }

  /**
   * Keeps bytes that the kernel did not take for `flush`, after those kept before. Returns a refusal if the memory
   * account is full.
   */
  keep(bytes: Buffer, start: number, end: number): GatewayError | undefined {
    const rest = bytes.subarray(start, end);
    return this.#append(isReused(bytes) ? Buffer.from(rest) : rest);
  }

  #append(rest: Buffer): GatewayError | undefined {
    const refusal = this.#memoryAccount.take("unsent", rest.length);
    if (refusal) return refusal;
    this.#unsent ??= [];
    this.#unsent.push(rest);
    this.#unsentBytes += rest.length;
    return undefined;
  }

  /** Writes kept bytes and returns how many the kernel took. */
  flush(): number {
    let total = 0;
    while (this.#unsent) {
      const [first] = this.#unsent;
      if (!first) break;
      const taken = this.#socket.write(first, 0, first.length);
      if (taken < 0) break;
      total += taken;
      this.#unsentBytes -= taken;
      this.#memoryAccount.release("unsent", taken);
      if (taken < first.length) {
        this.#unsent[0] = first.subarray(taken);
        return total;
      }
      this.#unsent.shift();
    }
    this.clear();
    return total;
  }

  clear(): void {
    if (this.#unsentBytes > 0) this.#memoryAccount.release("unsent", this.#unsentBytes);
    this.#unsent = undefined;
    this.#unsentBytes = 0;
  }
}

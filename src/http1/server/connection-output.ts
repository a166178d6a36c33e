// Buffers bytes that the kernel does not accept yet.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { GatewayError } from "../../base/errors.ts";
import { isReused } from "./outgoing.ts";

/**
 * The part of Bun's socket that the output uses. `write` returns the number of accepted bytes, or a negative number if
 * the socket is closed.
 */
export interface ByteTaker {
  write(bytes: Buffer, byteOffset: number, byteLength: number): number;
}

export class ConnectionOutput {
  readonly #socket: ByteTaker;
  readonly #memoryAccount: MemoryAccount;
  #unsent: Buffer[] | undefined;
  #unsentBytes = 0;

  /** Buffered bytes count on `memoryAccount`. */
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

  /** Writes bytes, and returns whether all were accepted. Other bytes are copied, and written by `flush`. */
  writeCopied(bytes: Buffer): boolean {
    const taken = this.#unsent ? 0 : this.#socket.write(bytes, 0, bytes.length);
    // If the socket is closed, nothing is buffered.
    if (taken < 0 || taken === bytes.length) return true;
    this.#append(Buffer.from(bytes.subarray(taken)));
    return false;
  }

  /** Buffers bytes that the kernel did not accept, for `flush`. Returns an error if the memory account is full. */
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

  /** Writes buffered bytes, and returns how many the kernel accepted. */
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

// Limits messages for streams that have ended. A few may still be on their way when a stream ends; more are an attack.
import { ProtocolError } from "./messages.ts";

/** Bytes that each message counts as, in addition to its payload. */
const messageCost = 64;
/** Bytes allowed for each ended stream in addition to its body: enough for its last message and a few grants. */
const streamAllowance = 64 * messageCost;
/** Bytes allowed at the beginning, before any stream has ended. */
const firstAllowance = 64 * 1024;

export class Orphans {
  #allowance = firstAllowance;

  /** Adds the allowance of a stream that has ended. `bytes` is how much of its body the other end may still send. */
  expect(bytes: number): void {
    this.#allowance += bytes + streamAllowance;
  }

  /** Counts a message for an ended stream. Throws a ProtocolError if the allowance is used up. */
  came(bytes: number): void {
    this.#allowance -= bytes + messageCost;
    if (this.#allowance < 0) throw new ProtocolError("too much came for streams that are over");
  }
}

// Messages for ended streams: a few are on their way when a stream ends, and more are a flood.
import { ProtocolError } from "./messages.ts";

/** The cost of the message itself. */
const messageCost = 64;
/** The allowance for what may be on its way for a stream besides its body: its end, a few credits. */
const streamAllowance = 64 * messageCost;
/** The allowance from the start, for any streams. */
const firstAllowance = 64 * 1024;

export class Orphans {
  #allowance = firstAllowance;

  /** Call this when a stream has ended for which the other end may have sent this many more bytes. */
  expect(bytes: number): void {
    this.#allowance += bytes + streamAllowance;
  }

  /** Counts a message for an ended stream. Throws a ProtocolError if there are too many. */
  came(bytes: number): void {
    this.#allowance -= bytes + messageCost;
    if (this.#allowance < 0) throw new ProtocolError("too much came for streams that are over");
  }
}

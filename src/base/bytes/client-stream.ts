// The client's side of an answer that is sent piece by piece.

export interface ClientStream {
  /**
   * Sends bytes, given as text with one character for each (`latin1`), by the end of this turn of the event loop or as soon
   * as the client takes them. False: the client is behind; `onDrain` will be called when it has caught up. Does nothing
   * after `end`, `abort` or when the client has left.
   */
  write(bytes: string): boolean;
  /** Writes like `write`: `bytes` from `start` to `end` between two such texts; nothing of them is asked for later. */
  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean;
  onDrain: (() => void) | undefined;
  /** The answer is complete, `last` (as for `write`) included. */
  end(last?: string): void;
  /**
   * Breaks the connection off, so that the client knows the answer for incomplete. `trailer`: a field line for a client that
   * reads it as that (`ClientRequest.faultTrailer`): where the answer comes in chunks, it ends with it instead.
   */
  abort(trailer?: string): void;
}

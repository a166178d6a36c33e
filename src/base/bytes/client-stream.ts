// The client's side of an answer that is sent piece by piece.

export interface ClientStream {
  /**
   * Sends bytes, as text with one character for each (`latin1`), by the end of this turn of the event loop or once the
   * client accepts them. Returns false if the client is behind; `onDrain` is called once it has caught up. Does nothing
   * after `end` or `abort`, or once the client has left.
   */
  write(bytes: string): boolean;
  /**
   * Writes like `write`: `bytes` from `start` to `end` between two such texts. The buffer is not used after the call.
   */
  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean;
  onDrain: (() => void) | undefined;
  /** Ends the complete answer, including `last` (as for `write`). */
  end(last?: string): void;
  /**
   * Breaks off the connection, so that the client knows that the answer is incomplete. `trailer` is a field line for a
   * client that reads trailers (`ClientRequest.faultTrailer`): a chunked answer then ends with it instead.
   */
  abort(trailer?: string): void;
}

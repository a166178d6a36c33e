// The client's side of an answer that is sent piece by piece.

export interface ClientStream {
  /**
   * Sends bytes, as text with one character for each (`latin1`), at the end of this turn of the event loop at the
   * latest, or once the client accepts them. Returns false if the client is behind; `onDrain` is called once the
   * client has caught up. Does nothing after `end` or `abort`, or after the client has disconnected.
   */
  write(bytes: string): boolean;
  /**
   * Sends `before`, the buffer's bytes from `start` to `end`, and `after`, like `write`. The buffer is not used after
   * the call.
   */
  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean;
  onDrain: (() => void) | undefined;
  /** Ends the complete answer, including `last` (as for `write`). */
  end(last?: string): void;
  /**
   * Breaks off the connection, so that the client knows that the answer is incomplete. `trailer` is a field line for
   * a client that reads trailers (`ClientRequest.faultTrailer`): a chunked answer then ends with the trailer instead.
   */
  abort(trailer?: string): void;
}

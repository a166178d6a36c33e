// The connection to a client that receives its answer in pieces.

export interface ClientStream {
  /**
   * Sends bytes, given as text with one character for each byte (`latin1`). They leave at the end of this turn of the
   * event loop at the latest, or once the client accepts more. Returns false if the client is behind. In this case,
   * `onDrain` is called once the client has caught up. Does nothing after `end` or `abort`, or after the client has
   * disconnected.
   */
  write(bytes: string): boolean;
  /**
   * Sends `before`, the buffer's bytes from `start` to `end`, and `after`, like `write`. The buffer is not used after
   * the call.
   */
  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean;
  onDrain: (() => void) | undefined;
  /** Sends `last`, in the form that `write` takes, and ends the complete answer. */
  end(last?: string): void;
  /**
   * Breaks off the connection, so that the client knows that the answer is incomplete. `trailer` is a field line for
   * clients that read trailers (`ClientRequest.faultTrailer`). With `trailer`, a chunked answer ends with that trailer
   * instead of a broken connection.
   */
  abort(trailer?: string): void;
}

// A connection that transports whole messages, in order, in both directions: the tunnel to a node, or a realtime
// conversation.

export interface MessageLink {
  /** The address of the other end, for the log. */
  readonly peer: string;
  /** Number of sent bytes that have not left this process yet. */
  readonly unsentBytes: number;
  /**
   * Sends one message: `message` followed by `rest`. Both buffers may change after the call. Does nothing on a closed
   * link.
   */
  send(message: Uint8Array, rest?: Uint8Array): void;
  /**
   * Closes the link after everything that was sent. `reason` is for the peer's log, at most 120 bytes. Does nothing on
   * a closed link.
   */
  close(code: number, reason: string): void;
  /** Ends the link immediately, without a close frame. */
  terminate(): void;
}

/** A message link whose delivery can be paused, so that the peer must wait. */
export interface PausableLink extends MessageLink {
  /** Pauses delivery. After the call only messages that were already received are delivered. */
  pause(): void;
  resume(): void;
}

export interface MessageLinkListener {
  /**
   * Called with the bytes of a message, which may be kept. They may be part of a larger buffer, which then stays in
   * memory too.
   */
  message(bytes: Uint8Array): void;
  /** Called when all unsent bytes have left the process, so that more can be sent. */
  drained(): void;
  /** Called once, whichever side closed the link. The code is 1006 if the connection broke off (RFC 6455, 7.4.1). */
  closed(code: number, reason: string): void;
}

// A connection that transports whole messages, in order, in both directions: the tunnel to a node, or a realtime
// conversation.

export interface MessageLink {
  /** The address of the other end, for the log. */
  readonly peer: string;
  /** Bytes sent that have not left this process yet. */
  readonly unsentBytes: number;
  /**
   * Sends one message, `message` followed by `rest`. Both may change after the call. Does nothing once the link is
   * closed.
   */
  send(message: Uint8Array, rest?: Uint8Array): void;
  /**
   * Closes the link after everything sent. `reason` is for the other end's log, at most 120 bytes. Harmless on a closed
   * link.
   */
  close(code: number, reason: string): void;
  /** Ends the link immediately, without a close frame. */
  terminate(): void;
}

/** A link whose other end can be made to wait. */
export interface PausableLink extends MessageLink {
  /** After the call only messages that were already received are delivered. */
  pause(): void;
  resume(): void;
}

export interface MessageLinkListener {
  /** The bytes may be kept. They may be part of a larger buffer, which is then kept with them. */
  message(bytes: Uint8Array): void;
  /** All unsent bytes have left, so more can be sent. */
  drained(): void;
  /** Called once, whichever end closed the link. 1006 if the connection broke off (RFC 6455, 7.4.1). */
  closed(code: number, reason: string): void;
}
